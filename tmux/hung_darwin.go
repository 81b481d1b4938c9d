package tmux

import "golang.org/x/sys/unix"

func peerOf(fd int) (int, error) {
	return unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
}

// A held process is a number: macOS has nothing that means one process for good.
type held int

func hold(pid int) (held, error) { return held(pid), nil }

func (h held) kill() error { return unix.Kill(int(h), unix.SIGKILL) }
func (h held) release()    {}
