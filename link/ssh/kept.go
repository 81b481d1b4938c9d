package ssh

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"netsky/home"
	"netsky/internal/execx"
	"netsky/internal/proc"
)

// maxSocket is the longest path of a unix socket (macOS), less what ssh appends while it makes one.
const maxSocket = 103 - len(".0123456789abcdef")

// sockets returns the directory of the kept connections' sockets, which only this user can enter, and how
// the names of this home's begin. It is made if it is not there.
func (c Client) sockets() (dir, prefix string, err error) {
	dir, prefix = c.place()
	if dir == c.Home.Path(home.RunDir, "ssh") {
		f, err := c.Home.OpenDir(home.RunDir+"/ssh", true)
		if err != nil {
			return "", "", err
		}
		return dir, prefix, f.Close()
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", "", err
	}
	return dir, prefix, own(dir)
}

// own returns an error unless a directory is this user's alone.
func own(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || info.Mode().Perm() != 0o700 || !ok || int(st.Uid) != os.Getuid() {
		return fmt.Errorf("%s: is not a directory of yours alone (mode 0700), which ssh's sockets need; remove it", dir)
	}
	return nil
}

// place is where the sockets are.
func (c Client) place() (dir, prefix string) {
	dir, prefix = c.Home.Path(home.RunDir, "ssh"), digest(c.Home.Root())
	_, err := os.Stat(c.Home.Path(home.RunDir)) // else the home is not made
	if err != nil || len(dir)+1+2*len(prefix) > maxSocket || strings.ContainsFunc(dir, special) {
		dir = "/tmp/netsky-" + strconv.Itoa(os.Getuid())
	}
	return dir, prefix
}

// special reports whether a character of a path would mean something in ssh's configuration.
func special(r rune) bool {
	return r < 0x80 && !strings.ContainsRune("/._-+@,", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:3])
}

// on returns the options of what uses the connection that is kept at a socket.
func (c Client) on(socket string) []string {
	return append(c.options(), "LogLevel=ERROR", "ClearAllForwardings=yes", "ControlPath="+socket)
}

// alone returns the options of a connection that nothing else uses.
func (c Client) alone() []string { return append(c.options(), "ControlMaster=no", "ControlPath=none") }

// connect returns the options of what is run on a host, and makes the connection that is kept if there
// is none; ssh asks at the terminal, and complains to errs.
func (c Client) connect(ctx context.Context, h Host, errs io.Writer) (options []string, err error) {
	if err := h.Check(); err != nil {
		return nil, err
	}
	if c.own {
		return append(c.alone(), "LogLevel=ERROR", "ClearAllForwardings=yes"), nil
	}
	dir, prefix, err := c.sockets()
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, prefix+digest(h.Dest))
	options = append(c.on(socket), "ControlMaster=no")
	if answers(socket) {
		return options, nil
	}
	lock, err := os.OpenFile(socket+".lock", os.O_RDWR|os.O_CREATE, 0o600) // of several at once one makes it
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	for unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		if err := proc.Sleep(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
	if answers(socket) {
		return options, nil
	}
	forget(socket)
	cmd, err := c.command(ctx, append(c.on(socket), "ControlMaster=yes", "ControlPersist=10m", "StreamLocalBindMask=0177"), "-f", "-N", "-T", "--", h.Dest)
	if err != nil {
		return nil, err
	}
	cmd.Stderr = errs
	return options, ended(ctx, cmd.Run())
}

// answers reports whether something listens at a socket.
func answers(socket string) bool {
	conn, err := net.Dial("unix", socket)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// Close ends the connections that are kept for the home. Whoever uses one loses it.
func (c Client) Close(ctx context.Context) error {
	dir, prefix := c.place()
	if own(dir) != nil { // nothing of this user's is there, whatever is
		return nil
	}
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range list {
		file := filepath.Join(dir, e.Name())
		switch {
		case !strings.HasPrefix(e.Name(), prefix):
		case e.Type() != fs.ModeSocket || strings.Contains(e.Name(), look):
			err = errors.Join(err, os.Remove(file))
		case answers(file):
			cmd, cerr := c.command(ctx, c.on(file), "-O", "exit", "--", "netsky")
			if cerr == nil {
				_, cerr = execx.Question{Program: cmd.Path, Args: cmd.Args[1:], Env: cmd.Env, Wait: connectTime}.Ask(ctx)
			}
			err = errors.Join(err, cerr)
		}
	}
	return err
}
