package proc

import "golang.org/x/sys/unix"

func peerOf(fd int) (int, error) {
	return unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
}

func peerEnded(int) bool { return false }
