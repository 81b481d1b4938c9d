package bus

import (
	"context"
	"slices"
	"sync"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
	"netsky/home"
)

const (
	shutdownWait = 45 * time.Second // a running turn delays the ack no longer
	turnGrace    = time.Second      // from a claim until its holder reports a turn
)

// A shutdown is what has been requested of this receiver under its start id.
type shutdown struct {
	since    time.Time
	requests []*letter // in claimed/, not yet acked
	obeyed   bool
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
		r.o.Report("the system cannot watch the inbox of "+string(r.id)+": polling", nil)
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
	something := len(r.queue)+len(r.again) > 0 || r.given != nil || r.shut != nil && r.shut.obeyed
	r.mu.Unlock()
	if something { // reported last, so that a Next finds the lock free
		r.wake()
	}
	return wait
}

func (r *Receiver) due() (wait time.Duration) {
	wait = passEvery
	r.takeMended()
	if r.stale || len(r.queue) == 0 && r.more {
		due := r.scanned.Add(scanShare * r.took)
		if left := time.Until(due); left > 0 && len(r.queue) > 0 {
			wait = min(wait, left)
		} else if err := r.scan(); err != nil {
			r.trouble("inbox", "cannot list the inbox of "+string(r.id), err)
			wait = lookAgain
		} else {
			r.passed("inbox")
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
	r.sortOut(&r.again)
	r.sortOut(&r.queue)
	r.readWitnesses()
	if left := r.answerShutdown(); left > 0 {
		wait = min(wait, left)
	}
	if time.Since(r.kept) >= passEvery {
		r.kept = time.Now()
		if removed, err := r.lock.Keep(); err != nil {
			r.trouble("lock", "cannot record the holder of "+string(r.id)+"'s mailbox", err)
		} else if removed {
			r.o.Report("run/lock was removed and has been restored; the mailbox of "+string(r.id)+" is still held by this process", nil)
		}
	}
	if now := r.bus.now(); now.Sub(r.seen.Loaded) > time.Hour {
		if err := r.seen.Load(now); err != nil {
			r.trouble("seen", "cannot read the remembered IDs", err)
		} else {
			r.passed("seen")
		}
	}
	return wait
}

// sortOut handles the control mail of a list. The caller holds mu.
func (r *Receiver) sortOut(list *[]*letter) {
	keep := (*list)[:0]
	for _, l := range *list {
		if !l.kind.Control() || !r.control(l) {
			keep = append(keep, l)
		}
	}
	clear((*list)[len(keep):])
	*list = keep
}

// control obeys or files one letter; false leaves it for the next pass.
func (r *Receiver) control(l *letter) (settled bool) {
	if r.passing && l.kind == envelope.KindShutdown {
		return false
	}
	if !r.readable(l) {
		return false
	}
	if l.env == nil {
		return true
	}
	fresh := !l.claimed
	if fresh {
		claimed, err := r.claim(l)
		if err != nil {
			r.trouble(l.name, "cannot claim "+l.name, err)
			return false
		}
		if !claimed {
			return true
		}
	}
	e, now := *l.env, r.bus.now()
	known := r.seen.Has(e)
	if !known && e.Kind == envelope.KindShutdown && r.obeys(e, now) {
		if r.shut == nil {
			r.shut = &shutdown{since: now}
		}
		r.shut.requests = append(r.shut.requests, l)
		return true
	}
	if err := r.fileControl(l, known); err != nil {
		r.trouble(l.name, "cannot file "+l.name, err)
		if fresh {
			r.again = append(r.again, l) // it is in claimed/ now
		}
		return fresh
	}
	r.passed(l.name)
	if e.Kind == envelope.KindShutdown {
		r.o.Report("filed "+l.name+": a shutdown for another start", nil)
	}
	if e.Kind == envelope.KindCancel && !known && !r.withdrawn(e) && r.o.Cancel != nil {
		r.o.Cancel(e)
	}
	return true
}

// withdrawn reports whether the envelope cancels a shutdown, named by its ID, that was
// requested and has not been obeyed yet. The caller holds mu.
func (r *Receiver) withdrawn(e envelope.Envelope) bool {
	if r.shut == nil || r.shut.obeyed || e.From.IsClone() {
		return false
	}
	i := slices.IndexFunc(r.shut.requests, func(l *letter) bool { return l.env.ID == e.InReplyTo })
	if i < 0 {
		return false
	}
	l := r.shut.requests[i]
	if err := r.file(l.name, *l.env); err != nil {
		r.trouble(l.name, "cannot cancel the shutdown "+l.env.ID, err)
		return true // it will be obeyed: the sender gets the ack
	}
	r.o.Report("filed "+l.name+": cancelled by "+e.ID, nil)
	if r.shut.requests = slices.Delete(r.shut.requests, i, i+1); len(r.shut.requests) == 0 {
		r.shut = nil
		r.wake()
	}
	return true
}

func (r *Receiver) fileControl(l *letter, known bool) error {
	if known {
		return r.filed(l.name, mailbox.Why{}, *l.env)
	}
	return r.file(l.name, *l.env)
}

// obeys reports whether a shutdown is for this start and its sender may request it.
func (r *Receiver) obeys(e envelope.Envelope, now time.Time) bool {
	return r.o.Start != "" && e.Start == r.o.Start && !e.From.IsClone() && !e.Expired(now)
}

// answerShutdown acks a requested shutdown when it is time, and returns when to try again;
// 0 means never. The caller holds mu.
func (r *Receiver) answerShutdown() time.Duration {
	if r.shut == nil || len(r.shut.requests) == 0 {
		return 0
	}
	now := r.bus.now()
	late := now.Sub(r.shut.since) >= shutdownWait
	busy := r.turns > 0
	if grace := turnGrace - now.Sub(r.lastClaim); len(r.held) > 0 && grace > 0 && !busy && !late {
		return min(grace, turnGrace)
	}
	if busy && !late {
		return time.Second
	}
	ack := envelope.Envelope{From: r.id, To: agent.Root, Kind: envelope.KindShutdownAck}
	if busy {
		ack.Extra = envelope.CutOff()
	}
	var left []*letter
	for _, l := range r.shut.requests {
		err := r.bus.answer(*l.env, ack)
		if err == nil {
			err = r.file(l.name, *l.env)
		}
		if err != nil {
			r.trouble(l.name, "cannot ack the shutdown "+l.env.ID, err)
			left = append(left, l)
		}
	}
	r.shut.requests = left
	if len(left) == 0 || late {
		// A receiver ends even if its ack cannot be written.
		r.shut.obeyed = true
	}
	if len(left) > 0 {
		return time.Second
	}
	return 0
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
	if err != nil {
		r.trouble("events", "cannot read what the witnesses of "+string(r.id)+" saw", err)
		return
	}
	r.passed("events")
}

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
