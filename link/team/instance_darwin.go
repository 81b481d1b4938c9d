package team

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// machine returns the machine's id, "" if it has none.
func machine() string {
	id, _ := unix.Sysctl("kern.uuid")
	return id
}

// fileID returns what a file has that no copy of it has.
func fileID(_ string, info os.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Sprint(info.ModTime().UnixNano())
	}
	return fmt.Sprint(st.Ino, st.Birthtimespec.Sec, st.Birthtimespec.Nsec)
}
