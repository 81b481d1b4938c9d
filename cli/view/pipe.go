package view

import (
	"os"

	"golang.org/x/sys/unix"
)

// A pipe is the writing end of a pipe, or a socket.
type pipe struct {
	fd      int
	request uint // the ioctl that counts what the reader has not taken
}

// pipeOf returns the pipe behind a stream, or nil.
func pipeOf(stream any) *pipe {
	f, ok := stream.(*os.File)
	if !ok {
		return nil
	}
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return nil
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFIFO:
		return &pipe{int(f.Fd()), unreadPipe}
	case unix.S_IFSOCK:
		return &pipe{int(f.Fd()), unreadSocket}
	}
	return nil
}

// IsClosed reports whether the stream was closed when the program started: Go then
// opens the null device for both reading and writing. With >/dev/null it is open only
// for writing.
func IsClosed(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	var st, null unix.Stat_t
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE == unix.O_RDWR &&
		unix.Fstat(int(f.Fd()), &st) == nil && unix.Stat(os.DevNull, &null) == nil &&
		st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == null.Rdev
}

// state returns how many bytes written have not been read, and whether no reader is left. If
// the system doesn't count unread bytes, unread is 0.
func (p *pipe) state() (unread int, gone bool) {
	list := []unix.PollFd{{Fd: int32(p.fd)}}
	if _, err := unix.Poll(list, 0); err == nil {
		gone = list[0].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0
	}
	n, err := unix.IoctlGetInt(p.fd, p.request) // only now: it may read all, and then go
	if err != nil {
		n = 0
	}
	return max(n, 0), gone
}
