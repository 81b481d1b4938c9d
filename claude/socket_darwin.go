package claude

import "golang.org/x/sys/unix"

// peerProcess returns the process that listens at the other end.
func peerProcess(fd int) (int, error) {
	return unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
}
