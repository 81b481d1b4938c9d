package mailbox

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"golang.org/x/sys/unix"
)

// noAtime keeps reading from being a write: otherwise each envelope would add an access
// time to the journal.
const NoAtime = unix.O_NOATIME

func renameExclusive(dir int, from string, toDir int, to string) error {
	return unix.Renameat2(dir, from, toDir, to, unix.RENAME_NOREPLACE)
}

// openBeneath opens a directory below another in one call that follows no link. ok is
// false if the kernel has no such call or a sandbox forbids it.
func openBeneath(dir int, rel string) (fd int, err error, ok bool) {
	if err := Step("open"); err != nil {
		return -1, err, true
	}
	for _, flags := range []int{NoAtime, 0} {
		err = retry(func() error {
			fd, err = unix.Openat2(dir, rel, &unix.OpenHow{
				Flags:   uint64(unix.O_DIRECTORY | unix.O_RDONLY | unix.O_CLOEXEC | flags),
				Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
			})
			return err
		})
		if err != unix.EPERM { // another user's directory: its access time must not be suppressed
			break
		}
	}
	return fd, err, err != unix.ENOSYS && err != unix.EPERM && err != unix.EAGAIN
}

// pathOf returns where an open file is now, whatever its name was when it was opened;
// ok is false if the system does not report it.
func pathOf(fd int) (path string, ok bool) {
	var buf [512]byte
	n, err := unix.Readlink("/proc/self/fd/"+strconv.Itoa(fd), buf[:])
	return string(buf[:max(n, 0)]), err == nil && n < len(buf)
}

// eachDirent parses the kernel's struct linux_dirent64 without allocating a string for
// each name.
func eachDirent(buf []byte, fn func(name []byte) bool) (all bool) {
	const sizeAt, nameAt = 16, 19
	for len(buf) > nameAt {
		size := int(binary.NativeEndian.Uint16(buf[sizeAt:]))
		if size <= nameAt || size > len(buf) {
			return true
		}
		name := buf[nameAt:size]
		if end := bytes.IndexByte(name, 0); end >= 0 {
			name = name[:end]
		}
		buf = buf[size:]
		if string(name) != "." && string(name) != ".." && !fn(name) {
			return false
		}
	}
	return true
}

// HasWriter reports whether the file is open for writing anywhere. The kernel refuses a
// read lease on such a file; it also refuses one on another user's file, or if the file
// system has no leases, and then it is unknown. A lease is given back at once.
func HasWriter(fd int) bool {
	if Step("lease") != nil {
		return false
	}
	err := retry(func() error {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
		return err
	})
	if err == nil {
		unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
	}
	return err == unix.EAGAIN
}
