package access

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// tcpListen is the state of a listening socket in the kernel's tables.
const tcpListen = "0A"

// A socketRow is one row of /proc/net/tcp or tcp6.
type socketRow struct {
	local, remote, state string
	uid                  int
	inode                uint64 // 0: no process has it open
}

// scanSockets calls fn for each socket of both tables until fn returns true.
func scanSockets(fn func(socketRow) bool) (found bool, err error) {
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, ferr := os.Open(name)
		if errors.Is(ferr, os.ErrNotExist) && name != "/proc/net/tcp" {
			continue // no IPv6
		}
		if ferr != nil {
			return false, ferr
		}
		in := bufio.NewScanner(f)
		for in.Scan() && !found {
			if row, ok := parseSocket(in.Text()); ok {
				found = fn(row)
			}
		}
		err = in.Err()
		f.Close()
		if found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// parseSocket reads "0: 0100007F:1E25 00000000:0000 0A … uid timeout inode …".
func parseSocket(line string) (r socketRow, ok bool) {
	f := strings.Fields(line)
	if len(f) < 10 {
		return r, false
	}
	uid, err := strconv.Atoi(f[7])
	inode, err2 := strconv.ParseUint(f[9], 10, 64)
	return socketRow{f[1], f[2], f[3], uid, inode}, err == nil && err2 == nil
}

// written returns an address as those tables have it: each 32 bits in the machine's
// byte order. An IPv4 address may be in tcp6 as well.
func written(a netip.AddrPort) []string {
	addr := a.Addr().Unmap().WithZone("")
	wide := addr.As16()
	forms := []string{hexAddr(wide[:], a.Port())}
	if addr.Is4() {
		four := addr.As4()
		forms = append(forms, hexAddr(four[:], a.Port()))
	}
	return forms
}

func hexAddr(b []byte, port uint16) string {
	var text strings.Builder
	for ; len(b) > 0; b = b[4:] {
		fmt.Fprintf(&text, "%08X", binary.NativeEndian.Uint32(b))
	}
	return fmt.Sprintf("%s:%04X", text.String(), port)
}

// peerUser returns the user whose process has the other end of a connection within this
// machine. ok is false if the kernel can't be asked.
func peerUser(remote, local netip.AddrPort) (uid int, ok bool, err error) {
	from, to := written(remote), written(local)
	var row socketRow
	// The table is not read atomically, and a socket that closes meanwhile shifts it.
	for range 3 {
		found, err := scanSockets(func(r socketRow) bool {
			row = r
			return slices.Contains(from, r.local) && slices.Contains(to, r.remote)
		})
		if err != nil {
			return 0, false, nil
		}
		if found {
			if row.inode == 0 {
				break // no process has it open any more, and the kernel shows it as root's
			}
			return row.uid, true, nil
		}
	}
	return 0, true, errors.New("its other end is closed")
}

// portHolder returns the process that listens on the address.
func portHolder(addr netip.AddrPort) holder {
	h := holder{UID: -1}
	port := fmt.Sprintf(":%04X", addr.Port())
	var inode uint64
	found, _ := scanSockets(func(r socketRow) bool {
		if r.state != tcpListen || !strings.HasSuffix(r.local, port) {
			return false
		}
		wild := strings.Trim(strings.TrimSuffix(r.local, port), "0") == ""
		if !wild && !addr.Addr().IsUnspecified() && !slices.Contains(written(addr), r.local) {
			return false
		}
		h.UID, inode = r.uid, r.inode
		return true
	})
	if !found {
		return h
	}
	want := fmt.Sprintf("socket:[%d]", inode)
	procs, _ := os.ReadDir("/proc")
	for _, p := range procs {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || !hasOpen(pid, want) {
			continue
		}
		h.PID = pid
		if data, err := os.ReadFile(filepath.Join("/proc", p.Name(), "comm")); err == nil {
			h.Program = strings.TrimSpace(string(data))
		}
		h.Dir, _ = os.Readlink(filepath.Join("/proc", p.Name(), "cwd"))
		break
	}
	return h
}

func hasOpen(pid int, want string) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	list, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(list, func(e os.DirEntry) bool {
		to, err := os.Readlink(filepath.Join(dir, e.Name()))
		return err == nil && to == want
	})
}
