package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
	"netsky/home"
)

// ErrShutdown is returned by Next after the receiver has obeyed a shutdown.
var ErrShutdown = errors.New("shut down as asked")

// ErrClosed is returned by the methods of a closed receiver.
var ErrClosed = errors.New("receiver closed")

// ReceiveOptions configure a receiver. The zero value obeys no shutdown, accepts texts of
// any length and drops reports.
type ReceiveOptions struct {
	Start   string // the agent's own start id; "" obeys no shutdown
	MaxText int    // longest rendered text the runtime accepts, in bytes; 0: any
	Witness bool   // other processes witness, so Delivery.Witnessed is useful
	Running bool   // a turn may already run; the first call of Turn is about it
	Carry   bool   // the holder passes everything on, control mail too

	// Report receives what the receiver did besides handing over, and what went wrong (err
	// is nil if nothing did). It must be quick and must not call the receiver. It gets
	// names of files and IDs, never a message's text.
	Report func(what string, err error)
	// Offered, if set, reports whether a dead holder may have given it out: it does not expire.
	Offered func(envelope.Envelope) bool
	// Cancel receives cancels; it must be quick.
	Cancel func(envelope.Envelope)
}

// A Receiver is the one process that takes envelopes out of a mailbox. Its
// methods are safe for concurrent use.
type Receiver struct {
	o      ReceiveOptions
	lock   *home.Lock
	cancel context.CancelFunc
	done   chan struct{} // closed when run has ended
	ready  chan struct{} // there may be something for Next; one pending is enough

	mu               sync.Mutex // guards the fields that follow, and what they embed
	closed, released bool
	*box
	*queue
	hand
	control
	tail    *home.EventTail
	waiting int       // calls of Next in progress
	given   *Delivery // claimed for one of them
	kept    time.Time // when the lock's file was last looked for
}

// Receive takes the mailbox of an address: the lock receiver-<address> (the error matches
// home.ErrLocked if another process holds it), what a dead holder had claimed, and then
// new mail. What had been confirmed or witnessed is filed; the rest is offered again
// before anything new. The error matches ErrNoMailbox if there is none.
func (b *Bus) Receive(ctx context.Context, id agent.ID, o ReceiveOptions) (*Receiver, error) {
	r, err := b.hold(id, "", o)
	if err != nil {
		return nil, err
	}
	ctx, r.cancel = context.WithCancel(ctx)
	of := mailbox.Watched{Dirs: []string{b.home.Path(placePath(id, Inbox))}, Arrivals: true}
	if o.Witness {
		of.Dirs = append(of.Dirs, b.home.Path(home.EventsDir))
	}
	w, err := b.hub.Watch(ctx, of)
	if err != nil {
		r.cancel()
		close(r.done)
		r.release()
		return nil, err
	}
	go r.run(ctx, w)
	return r, nil
}

// hold takes the lock and recovers; it starts no goroutine.
func (b *Bus) hold(id agent.ID, role home.Role, o ReceiveOptions) (*Receiver, error) {
	if o.Report == nil {
		o.Report = func(string, error) {}
	}
	if o.Offered == nil {
		o.Offered = func(envelope.Envelope) bool { return false }
	}
	inbox, err := b.openPlace(id, Inbox)
	if err != nil {
		return nil, err
	}
	unix.Close(inbox)
	// A forked process holds its parent's locks until it executes another program, so a
	// lock just released may seem held for a moment.
	moment, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	lock, err := b.home.WaitLockAs(moment, home.ReceiverLock(id), role, nil)
	if err != nil {
		return nil, err
	}
	place := func(p Place) mailbox.Dir { return mailbox.Dir{Home: b.home, Rel: placePath(id, p)} }
	x := &box{
		bus: b.boxes, filer: b.filer, id: id, report: o.Report,
		inbox: place(Inbox), claimed: place(Claimed), delivered: place(Delivered), poisons: place(Poison),
		seen:     mailbox.SeenFile{Lines: mailbox.Lines{Home: b.home, Box: home.Mailbox(id), Name: mailbox.SeenName, Files: &b.files}, Keep: b.keep},
		reported: make(map[string]bool),
		mend:     mending{bus: b.boxes, box: id, place: Inbox},
	}
	q := &queue{box: x, poke: make(chan struct{}, 1), known: make(map[string]*letter), stale: true}
	r := &Receiver{
		o: o, lock: lock, cancel: func() {}, done: make(chan struct{}), ready: make(chan struct{}, 1),
		box: x, queue: q,
		hand:    hand{box: x, post: &b.sender, maxText: o.MaxText, offered: o.Offered, held: make(map[string]*Delivery)},
		control: control{queue: q, post: &b.sender, start: o.Start, passing: role == home.Passing, cancels: o.Cancel},
	}
	if o.Running {
		r.turns = 1
	}
	if err := r.recover(); err != nil {
		r.release()
		return nil, fmt.Errorf("take the mailbox of %s: %w", id, err)
	}
	return r, nil
}

// recover reads the remembered IDs and settles what a dead holder had claimed.
func (r *Receiver) recover() error {
	if err := r.seen.Load(r.bus.now()); err != nil {
		return err
	}
	claimed, err := r.use(&r.claimed)
	if err != nil {
		return err
	}
	found, err := candidates(claimed, 0)
	if err != nil {
		return err
	}
	list, witnessed := make([]*letter, len(found)), make(map[string]int64) // when last, in milliseconds
	for i, c := range found {
		list[i] = &letter{candidate: c, claimed: true}
		if r.look(list[i], claimed); list[i].env != nil {
			witnessed[list[i].env.ID] = 0
		}
	}
	r.tail = home.Events(r.bus.home).TailAll(r.id)
	err = eachSeen(r.tail, func(id string, ms int64) {
		if last, ours := witnessed[id]; ours && ms > last {
			witnessed[id] = ms
		}
	})
	if err != nil {
		return err
	}
	for _, l := range list {
		// A note from before the file was written is about another sender's with that ID.
		if l.env == nil || r.controls(l) || witnessed[l.env.ID] < l.mark.MTime/1e6 && !r.seen.Has(*l.env) {
			r.again = append(r.again, l)
			continue
		}
		if err := r.file(l.name, mailbox.Why{}, *l.env); err != nil {
			return err
		}
		r.report("filed "+l.name+": confirmed or witnessed before this start", nil)
	}
	return nil
}

// Close stops the receiver, waits for its goroutine and releases the lock. Unconfirmed
// envelopes stay in claimed/ and will be offered again.
func (r *Receiver) Close() error {
	r.cancel()
	<-r.done
	return r.release()
}

func (r *Receiver) release() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.released {
		return nil
	}
	r.closed, r.released = true, true
	for _, d := range []*mailbox.Dir{&r.inbox, &r.claimed, &r.delivered, &r.poisons} {
		d.Close()
	}
	r.seen.Close()
	if r.tail != nil {
		r.tail.Close()
	}
	r.wake()
	return r.lock.Unlock()
}

func (r *Receiver) wake() { signal(r.ready) } // lets a waiting Next look again

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Turn marks a turn as running until done is called; done may be called twice. A shutdown
// is acked when no turn runs, or 45 s after its arrival as unfinished.
func (r *Receiver) Turn() (done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.o.Running {
		r.o.Running = false // it is counted
	} else {
		r.turns++
	}
	var once sync.Once
	return func() {
		once.Do(func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.turns--
			r.prod()
		})
	}
}

// run is the receiver's goroutine: it looks when something has changed, judges invalid
// files, and answers control mail, whatever else happens.
func (r *Receiver) run(ctx context.Context, w *Watch) {
	defer close(r.done)
	defer w.Close()
	if w.Polling() {
		r.report("the system cannot watch the inbox of "+string(r.id)+": polling", nil)
	}
	for {
		timer := time.NewTimer(r.pass())
		select {
		case <-ctx.Done():
			timer.Stop()
			r.mu.Lock()
			r.closed = true
			r.wake()
			r.mu.Unlock()
			return
		case <-w.C:
			r.mu.Lock()
			r.stale = true
			r.mu.Unlock()
		case <-r.poke:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// pass does what is due and returns when to run again at the latest.
func (r *Receiver) pass() (wait time.Duration) {
	r.mu.Lock()
	wait = r.due()
	something := len(r.letters)+len(r.again) > 0 || r.given != nil || r.shut != nil && r.shut.obeyed
	r.mu.Unlock()
	if something { // reported last, so that a Next finds the lock free
		r.wake()
	}
	return wait
}

func (r *Receiver) due() (wait time.Duration) {
	wait = passEvery
	r.takeMended()
	if r.stale || len(r.letters) == 0 && r.more {
		due := r.scanned.Add(scanShare * r.took)
		if left := time.Until(due); left > 0 && len(r.letters) > 0 {
			wait = min(wait, left)
		} else if r.check("inbox", "cannot list the inbox of "+string(r.id), r.scan(r.grab)) {
			wait = lookAgain
		}
	}
	if left := r.judge(); left > 0 {
		wait = min(wait, max(left, 10*time.Millisecond))
	}
	wait = min(wait, r.lapse())
	if len(r.again)+len(r.reported) > 0 {
		wait = min(wait, lookAgain)
	}
	r.fileAstray()
	if !r.o.Carry {
		r.sortOut(&r.again)
		r.sortOut(&r.letters)
	}
	r.readWitnesses()
	if left := r.answerShutdown(len(r.held)); left > 0 {
		wait = min(wait, left)
	}
	if time.Since(r.kept) >= passEvery {
		r.kept = time.Now()
		if removed, err := r.lock.Keep(); err != nil {
			r.trouble("lock", "cannot record the holder of "+string(r.id)+"'s mailbox", err)
		} else if removed {
			r.report("run/lock was removed and has been restored; the mailbox of "+string(r.id)+" is still held by this process", nil)
		}
	}
	if now := r.bus.now(); now.Sub(r.seen.Loaded) > time.Hour {
		r.check("seen", "cannot read the remembered IDs", r.seen.Load(now))
	}
	return wait
}

// readWitnesses marks the deliveries in hand that have been witnessed.
func (r *Receiver) readWitnesses() {
	if !r.o.Witness || len(r.held) == 0 {
		return
	}
	err := eachSeen(r.tail, func(id string, _ int64) {
		d := r.held[id]
		if d == nil {
			return
		}
		select {
		case <-d.witnessed:
		default:
			close(d.witnessed)
		}
	})
	r.check("events", "cannot read what the witnesses of "+string(r.id)+" saw", err)
}

// controls reports whether a letter is for the receiver itself.
func (r *Receiver) controls(l *letter) bool { return l.kind.Control() && !r.o.Carry }

// Obeyed reports whether the receiver has obeyed a shutdown, so that Next would return
// ErrShutdown; it does not wait.
func (r *Receiver) Obeyed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shut != nil && r.shut.obeyed
}

// eachSeen calls fn with the ID of every envelope that was seen since the last call, and
// when. Repeating an ID does no harm.
func eachSeen(tail *home.EventTail, fn func(id string, ms int64)) error {
	if err := mailbox.Step("read"); err != nil {
		return err
	}
	return tail.Read(func(e agent.Event) {
		if e.Event == agent.EventSeen && e.ID != "" {
			fn(e.ID, e.MS)
		}
	})
}
