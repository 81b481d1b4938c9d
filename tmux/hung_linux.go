package tmux

import "golang.org/x/sys/unix"

func peerOf(fd int) (int, error) {
	who, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(who.Pid), nil
}

// A held process is one behind whose number no other can come.
type held int

func hold(pid int) (held, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	return held(fd), err
}

func (h held) kill() error { return unix.PidfdSendSignal(int(h), unix.SIGKILL, nil, 0) }
func (h held) release()    { unix.Close(int(h)) }
