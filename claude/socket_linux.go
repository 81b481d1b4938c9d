package claude

import "golang.org/x/sys/unix"

// peerProcess returns the process that listens at the other end.
func peerProcess(fd int) (int, error) {
	who, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(who.Pid), nil
}
