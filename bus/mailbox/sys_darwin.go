package mailbox

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// noAtime has no equivalent here.
const NoAtime = 0

func renameExclusive(dir int, from string, toDir int, to string) error {
	return unix.RenameatxNp(dir, from, toDir, to, unix.RENAME_EXCL)
}

// openBeneath has no equivalent here: the caller walks.
func openBeneath(int, string) (fd int, err error, ok bool) { return -1, nil, false }

// pathOf returns where an open file is now, whatever its name was when it was opened;
// ok is false if the system does not report it.
func pathOf(fd int) (path string, ok bool) {
	var pin runtime.Pinner // the kernel writes to the buffer without the runtime's knowledge
	defer pin.Unpin()
	buf := new([1024]byte)
	pin.Pin(buf)
	_, err := unix.FcntlInt(uintptr(fd), unix.F_GETPATH, int(uintptr(unsafe.Pointer(buf))))
	if err != nil {
		return "", false
	}
	return unix.ByteSliceToString(buf[:]), true
}

func eachDirent(buf []byte, fn func(name []byte) bool) (all bool) {
	for len(buf) > 0 {
		used, _, names := unix.ParseDirent(buf, -1, nil)
		if used == 0 {
			return true
		}
		buf = buf[used:]
		for _, name := range names {
			if !fn([]byte(name)) {
				return false
			}
		}
	}
	return true
}

// HasWriter is unknown here.
func HasWriter(int) bool { return false }
