package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	bus     *Bus
	id      agent.ID
	o       ReceiveOptions
	lock    *home.Lock
	passing bool // drains leave shutdowns alone
	cancel  context.CancelFunc
	done    chan struct{} // closed when run has ended
	poke    chan struct{} // asks run for a pass; one pending is enough
	ready   chan struct{} // there may be something for Next; likewise

	mu                                 sync.Mutex // guards the fields that follow
	closed, released                   bool
	inbox, claimed, delivered, poisons mailbox.Dir
	seen                               mailbox.SeenFile
	buf                                []byte // for listing
	tail                               *home.EventTail
	queue                              []*letter // what waits in inbox/, in order
	known                              map[string]*letter
	again                              []*letter // what a dead holder had claimed, in order
	held                               map[string]*Delivery
	turns                              int
	waiting                            int       // calls of Next in progress
	given                              *Delivery // claimed for one of them
	lastClaim                          time.Time
	shut                               *shutdown
	scanned                            time.Time     // when the inbox was last listed
	took                               time.Duration // how long that took
	stale                              bool          // something has changed since
	more                               bool          // the inbox holds more than the queue
	swept                              time.Time
	kept                               time.Time       // when the lock's file was last looked for
	reported                           map[string]bool // troubles already reported, until they have passed
	mend                               mending
	astray                             map[string]envelope.Envelope // confirmed but not found in claimed/ when they were to be filed, by their names there
}

// Receive takes the mailbox of an address: the lock receiver-<address> (the error matches
// agent.ErrLocked if another process holds it), what a dead holder had claimed, and then
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
	box, err := b.openPlace(id, Inbox)
	if err != nil {
		return nil, err
	}
	unix.Close(box)
	// A forked process holds its parent's locks until it executes another program, so a
	// lock just released may seem held for a moment.
	moment, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	lock, err := b.home.WaitLockAs(moment, home.ReceiverLock(id), role, nil)
	if err != nil {
		return nil, err
	}
	place := func(p Place) mailbox.Dir { return mailbox.Dir{Home: b.home, Rel: placePath(id, p)} }
	r := &Receiver{
		bus: b, id: id, o: o, lock: lock,
		cancel: func() {}, done: make(chan struct{}), poke: make(chan struct{}, 1), ready: make(chan struct{}, 1),
		inbox: place(Inbox), claimed: place(Claimed), delivered: place(Delivered), poisons: place(Poison),
		seen:  mailbox.SeenFile{Home: b.home, Box: home.Mailbox(id), Keep: b.keep, Files: &b.files},
		known: make(map[string]*letter), held: make(map[string]*Delivery), reported: make(map[string]bool),
		stale: true,
	}
	r.mend = mending{bus: b, box: id, place: Inbox}
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
		list[i] = &letter{name: c.name, ns: c.ns, claimed: true}
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
		if l.env == nil || l.kind.Control() || witnessed[l.env.ID] < l.mark.MTime/1e6 && !r.seen.Has(*l.env) {
			r.again = append(r.again, l)
			continue
		}
		if err := r.file(l.name, *l.env); err != nil {
			return err
		}
		r.o.Report("filed "+l.name+": confirmed or witnessed before this start", nil)
	}
	slices.SortStableFunc(r.again, byTime)
	return nil
}

// use prepares a directory and reports if it had to be created again.
func (r *Receiver) use(d *mailbox.Dir) (int, error) {
	fd, mended, err := d.Use()
	if mended != "" {
		r.o.Report(r.bus.home.Path(d.Rel)+" "+mended, nil)
	}
	return fd, err
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
func (r *Receiver) prod() { signal(r.poke) }  // asks run for a pass

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// trouble reports an error once, until passed is called with the same name.
func (r *Receiver) trouble(name, what string, err error) {
	if !r.reported[name] && len(r.reported) < 1000 {
		r.reported[name] = true
		r.o.Report(what, err)
	}
}

func (r *Receiver) passed(name string) { delete(r.reported, name) }

// file remembers an envelope's ID and moves it from claimed/ to delivered/.
func (r *Receiver) file(name string, e envelope.Envelope) error {
	if err := r.seen.Add(r.bus.now(), e); err != nil {
		return err
	}
	return r.filed(name, mailbox.Why{}, e)
}

// filed moves a file whose ID is already remembered; the reason goes beside it.
func (r *Receiver) filed(name string, w mailbox.Why, e envelope.Envelope) error {
	from, err := r.use(&r.claimed)
	if err != nil {
		return err
	}
	return r.fileFrom(from, name, w, e)
}

func (r *Receiver) fileFrom(from int, name string, w mailbox.Why, e envelope.Envelope) error {
	to, err := r.use(&r.delivered)
	if err != nil {
		return err
	}
	_, err = r.bus.file(from, name, to, w, r.o.Report)
	if mailbox.Gone(err) {
		r.strays(name, e) // a person tidied up and it is remembered; or the whole mailbox is away
		return nil
	}
	return err
}

// maxAstray is how many are looked for; any others are offered again at the next start.
const maxAstray = 1000

func (r *Receiver) strays(name string, e envelope.Envelope) {
	if r.astray == nil {
		r.astray = make(map[string]envelope.Envelope)
	}
	if len(r.astray) < maxAstray {
		e.Text = ""
		r.astray[name] = e
	}
}

// fileAstray files what was confirmed while its mailbox was away, once that is back: the
// file seen came back with it and lacks it. The caller holds mu.
func (r *Receiver) fileAstray() {
	if len(r.astray) == 0 {
		return
	}
	fd, err := r.use(&r.claimed)
	if err != nil {
		return // reported where mail is claimed
	}
	for name, e := range r.astray {
		l := &letter{name: name, claimed: true}
		if r.look(l, fd); l.sys != nil {
			continue // not there yet
		}
		if l.env == nil || l.env.ID != e.ID || l.env.From != e.From || r.held[e.ID] != nil {
			delete(r.astray, name) // another file
			continue
		}
		delete(r.astray, name)
		err := r.rememberAgain(e)
		if err == nil {
			err = r.fileFrom(fd, name, mailbox.Why{}, e)
		}
		if err != nil {
			r.strays(name, e)
			r.trouble(name, "cannot file "+name, err)
			continue
		}
		r.o.Report("filed "+name+": its mailbox was away when it was confirmed", nil)
	}
}

// rememberAgain adds the envelope to seen if that is another file now and lacks it.
func (r *Receiver) rememberAgain(e envelope.Envelope) error {
	now := r.bus.now()
	if r.seen.Gone() {
		if err := r.seen.Load(now); err != nil {
			return err
		}
	}
	if r.seen.Has(e) {
		return nil
	}
	return r.seen.Add(now, e)
}

// sweep removes what dead senders left half written, once an hour.
func (r *Receiver) sweep(inbox int, now time.Time) {
	const tempAge = 36 * time.Hour
	if now.Sub(r.swept) < time.Hour && !r.swept.IsZero() {
		return
	}
	r.swept = now
	var old []string
	err := mailbox.Names(inbox, func(name string) bool {
		if name[0] == '.' && len(name) > len(mailbox.TempSuffix) && name[len(name)-len(mailbox.TempSuffix):] == mailbox.TempSuffix {
			old = append(old, name)
		}
		return len(old) < 10_000
	})
	for _, name := range old {
		st, looked := mailbox.Lstat(inbox, name)
		if looked == nil && now.Sub(timeOf(st.Mtim.Nano())) > tempAge && st.Mode&unix.S_IFMT == unix.S_IFREG {
			err = errors.Join(err, mailbox.Unlink(inbox, name))
		}
	}
	if err != nil {
		r.o.Report("sweep the inbox of "+string(r.id), err)
	}
}
