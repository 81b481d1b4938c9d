package view

import "golang.org/x/sys/unix"

// What counts the bytes that the reader of a pipe, or of a socket, has not taken.
const (
	unreadPipe   = unix.TIOCINQ // another name of FIONREAD, and the same at both ends
	unreadSocket = unix.TIOCOUTQ
)
