package view

import "golang.org/x/sys/unix"

// What counts the bytes that the reader of a pipe, or of a socket, has not taken.
const (
	unreadPipe   = 0x4004667f // FIONREAD, for which the library has no name
	unreadSocket = unix.TIOCOUTQ
)
