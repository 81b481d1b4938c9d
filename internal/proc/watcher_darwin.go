package proc

import "golang.org/x/sys/unix"

// A poller waits for NOTE_EXIT with kqueue. The kernel ties the note to the process,
// not to the number, but reports only the number.
type poller struct {
	queue  int
	buf    [64]unix.Kevent_t
	events []event
}

// An event is the number of a process that died. Its number may be watched
// again for another process, so the birth decides.
type event int

func (e event) of(x *watch) bool {
	return x.Process.PID == int(e) && !x.Process.Alive()
}

const wakeIdent = 1 // of the EVFILT_USER event

func newPoller() (*poller, error) {
	q, err := unix.Kqueue()
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(q)
	p := &poller{queue: q}
	if err := p.change(wakeIdent, unix.EVFILT_USER, unix.EV_ADD|unix.EV_CLEAR, 0); err != nil {
		unix.Close(q)
		return nil, err
	}
	return p, nil
}

func (p *poller) change(ident, filter, flags int, note uint32) error {
	var k unix.Kevent_t
	unix.SetKevent(&k, ident, filter, flags)
	k.Fflags = note
	for {
		_, err := unix.Kevent(p.queue, []unix.Kevent_t{k}, nil, nil)
		if err != unix.EINTR {
			return err
		}
	}
}

func (p *poller) add(x *watch) error {
	return p.change(x.Process.PID, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT, unix.NOTE_EXIT)
}

// remove leaves the note in the queue: another watch may wait for the same
// process, and an event without a watch means nothing.
func (p *poller) remove(*watch) {}

func (p *poller) signal(x *watch, sig unix.Signal) {
	if x.Process.Alive() {
		unix.Kill(x.Process.PID, sig)
	}
}

// wait blocks until a process died or wakeUp was called. Its result is valid until the
// next call.
func (p *poller) wait() ([]event, error) {
	n, err := unix.Kevent(p.queue, nil, p.buf[:], nil)
	if err != nil && err != unix.EINTR {
		return nil, err
	}
	p.events = p.events[:0]
	for _, e := range p.buf[:max(n, 0)] {
		if e.Filter == unix.EVFILT_PROC {
			p.events = append(p.events, event(e.Ident))
		}
	}
	return p.events, nil
}

func (p *poller) wakeUp() { p.change(wakeIdent, unix.EVFILT_USER, 0, unix.NOTE_TRIGGER) }

func (p *poller) close() error { return unix.Close(p.queue) }
