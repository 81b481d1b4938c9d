// This file repeats system calls that a signal has interrupted.

package proc

import "golang.org/x/sys/unix"

// Open opens a file; a program started meanwhile does not inherit it.
func Open(name string, flags int) (fd int, err error) {
	for {
		fd, err = unix.Open(name, flags|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// Openat opens a file below a directory; a program started meanwhile does not
// inherit it.
func Openat(dir int, name string, flags int, mode uint32) (fd int, err error) {
	for {
		fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC, mode)
		if err != unix.EINTR {
			return fd, err
		}
	}
}
