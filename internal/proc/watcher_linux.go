package proc

import "golang.org/x/sys/unix"

// A poller waits for pidfds with epoll. A pidfd means one process for good, even if its
// number is reused.
type poller struct {
	epoll, wake int
	buf         [64]unix.EpollEvent
	events      []event
}

// An event is a watch's number. Descriptors are reused, these numbers never.
type event uint64

func (e event) of(x *watch) bool { return x.seq == uint64(e) }

func newPoller() (*poller, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err == nil {
		err = unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, wake, &unix.EpollEvent{Events: unix.EPOLLIN})
		if err != nil {
			unix.Close(wake)
		}
	}
	if err != nil {
		unix.Close(ep)
		return nil, err
	}
	return &poller{epoll: ep, wake: wake}, nil
}

func (p *poller) add(x *watch) error {
	fd, err := unix.PidfdOpen(x.Process.PID, 0)
	if err != nil {
		return err
	}
	err = unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{
		Events: unix.EPOLLIN, Fd: int32(x.seq), Pad: int32(x.seq >> 32),
	})
	if err != nil {
		unix.Close(fd)
		return err
	}
	x.fd = fd
	return nil
}

// remove removes the pidfd before it closes it: a copy in a process that is just being
// forked would keep it in.
func (p *poller) remove(x *watch) {
	unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, x.fd, nil)
	unix.Close(x.fd)
}

func (p *poller) signal(x *watch, sig unix.Signal) {
	unix.PidfdSendSignal(x.fd, sig, nil, 0)
}

// wait blocks until a process died or wakeUp was called. Its result is valid until the
// next call.
func (p *poller) wait() ([]event, error) {
	n, err := unix.EpollWait(p.epoll, p.buf[:], -1)
	if err != nil && err != unix.EINTR {
		return nil, err
	}
	p.events = p.events[:0]
	for _, e := range p.buf[:max(n, 0)] {
		seq := uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32
		if seq == 0 {
			var b [8]byte
			unix.Read(p.wake, b[:])
			continue
		}
		p.events = append(p.events, event(seq))
	}
	return p.events, nil
}

func (p *poller) wakeUp() { unix.Write(p.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

func (p *poller) close() error {
	unix.Close(p.wake)
	return unix.Close(p.epoll)
}
