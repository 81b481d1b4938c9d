package proc

import (
	"errors"
	"net"
)

// Peer returns the process at the other end of a connection.
func Peer(conn *net.UnixConn) (pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	cerr := raw.Control(func(fd uintptr) { pid, err = peerOf(int(fd)) })
	return pid, errors.Join(err, cerr)
}
