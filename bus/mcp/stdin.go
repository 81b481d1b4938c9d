package mcp

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// endable returns in with reads that end when it is closed. Those of a process's own
// stdin don't, and Claude Code kills a server that takes longer than half a second to
// exit. Only a pipe or a socket is changed, which nobody else reads.
func endable(in io.ReadCloser) io.ReadCloser {
	f, ok := in.(*os.File)
	if !ok {
		return in
	}
	st, err := f.Stat()
	if err != nil || st.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return in
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return in
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return in
	}
	return both{os.NewFile(uintptr(fd), f.Name()), f}
}

// both is one stream under two descriptors.
type both struct {
	*os.File
	first *os.File
}

// Close closes both descriptors, so that the other end notices.
func (b both) Close() error {
	err := b.File.Close()
	b.first.Close()
	return err
}
