package console

import (
	"os"

	"golang.org/x/sys/unix"
)

// A pipe is the writing end of one, or a socket.
type pipe struct {
	fd      int
	request uint // the ioctl that counts what the reader has not taken
}

// pipeOf is the pipe behind a stream, or nil.
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

// IsClosed reports whether the stream is what Go puts in the place of one that was
// closed when the program began: the null device, open for both reading and
// writing. Whoever says >/dev/null gets it for writing, and means it.
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

// state reports whether something written has not been read, and whether no
// reader is left. Where the system does not count, nothing is unread.
func (p *pipe) state() (unread, gone bool) {
	n, err := unix.IoctlGetInt(p.fd, p.request)
	list := []unix.PollFd{{Fd: int32(p.fd)}}
	if _, perr := unix.Poll(list, 0); perr == nil {
		gone = list[0].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0
	}
	return err == nil && n > 0, gone
}
