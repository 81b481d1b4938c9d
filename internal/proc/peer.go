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

// PeerEnded reports whether the process at the other end is known to have ended, so that its number may be another's,
// which can be born in the same tick of the clock. Before Linux 6.5, and on macOS, that is not known.
func PeerEnded(conn *net.UnixConn) (over bool) {
	raw, err := conn.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { over = peerEnded(int(fd)) })
	}
	return over || err != nil
}
