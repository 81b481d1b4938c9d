package bus

import (
	"context"
	"errors"
	"math"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
	"netsky/home"
)

// ErrLeave is returned by a Drain's take for an envelope that should stay in the inbox.
var ErrLeave = errors.New("left in the inbox")

// Drain takes the mailbox's lock while it runs (the error matches home.ErrLocked if a
// receiver has it), passes each waiting envelope to take, at most max of them if max > 0,
// and confirms those for which take returned nil. If take returns ErrLeave the envelope is
// put back; any other error ends the drain and is returned, after the envelope is put
// back. Drain returns how many it confirmed. Shutdowns are left alone: they are for a
// receiver.
//
// A crash between take and the confirmation causes the envelope to be offered again.
func (b *Bus) Drain(ctx context.Context, id agent.ID, max int, take func(envelope.Envelope) error) (n int, err error) {
	r, err := b.hold(id, home.Passing, ReceiveOptions{})
	if err != nil {
		return 0, err
	}
	defer func() {
		if closed := r.release(); err == nil {
			err = closed
		}
	}()
	close(r.done) // no goroutine runs
	var left []*Delivery
	for n < max || max <= 0 {
		if err = ctx.Err(); err != nil {
			break
		}
		var d *Delivery
		if d, err = r.nextNow(); d == nil || err != nil {
			break
		}
		switch err = take(d.envelope); {
		case err == nil:
			if err = d.Confirm(); err == nil {
				n++
			}
		case errors.Is(err, ErrLeave):
			left = append(left, d) // until the end, or it would be next again
			err = nil
			continue
		default:
			left = append(left, d)
		}
		if err != nil {
			break
		}
	}
	for _, d := range left {
		if back := d.leave(); back != nil {
			err = errors.Join(err, back)
		}
	}
	return n, err
}

// nextNow is Next for a receiver without a goroutine: nil if no envelope waits.
func (r *Receiver) nextNow() (*Delivery, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takeMended()
	for {
		if len(r.letters) == 0 && (r.stale || r.more) {
			if err := r.scan(r.grab); err != nil {
				return nil, err
			}
		}
		r.judge()
		r.sortOut(&r.again)
		r.sortOut(&r.letters)
		if d := r.take(math.MaxInt, nil); d != nil {
			return d, nil
		}
		if !r.stale {
			return nil, nil
		}
	}
}

// File files envelopes of an inbox as delivered, by file name, for a caller that has read
// them there. It takes the mailbox's lock while it runs; the error matches home.ErrLocked
// if a receiver has it, which will file them itself. Names no longer in the inbox are
// skipped. It returns how many it filed; a crash leaves the others to the next receiver.
func (b *Bus) File(id agent.ID, names []string) (n int, err error) {
	r, err := b.hold(id, home.Passing, ReceiveOptions{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.release()) }()
	close(r.done) // no goroutine runs
	r.mu.Lock()
	defer r.mu.Unlock()
	list, err := r.claimNamed(names)
	if len(list) == 0 {
		return 0, err
	}
	var fresh []envelope.Envelope
	whys := make([]mailbox.Why, len(list))
	now, batch := r.bus.now(), make(map[mailbox.Key]bool)
	for i, l := range list {
		known := r.seen.Has(*l.env)
		for _, k := range mailbox.KeysOf(*l.env) {
			known = known || batch[k]
			batch[k] = true
		}
		if known && l.ours {
			whys[i] = deliveredBefore(*l.env)
		} else if !known {
			fresh = append(fresh, *l.env)
		}
	}
	if len(fresh) > 0 {
		if err := r.seen.Add(now, fresh...); err != nil {
			return 0, err
		}
	}
	for i, l := range list {
		if failed := r.filed(l.name, whys[i], *l.env); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		n++
	}
	return n, err
}

// claimNamed claims the named files of the inbox, and finds those that a dead holder had
// claimed. The caller holds mu.
func (q *queue) claimNamed(names []string) (list []*letter, err error) {
	dead := make(map[string]*letter)
	for _, l := range q.again {
		if l.env != nil {
			dead[l.name] = l
		}
	}
	for _, name := range names {
		if !envelope.IsFileName(name) {
			continue
		}
		if l := dead[name]; l != nil {
			list = append(list, l)
			continue
		}
		inbox, failed := q.use(&q.inbox)
		if failed != nil {
			return list, errors.Join(err, failed)
		}
		l := &letter{candidate: candidate{name: name}}
		if q.look(l, inbox); l.env == nil || l.kind.Control() {
			continue
		}
		switch claimed, failed := q.claim(l); {
		case failed != nil:
			err = errors.Join(err, failed)
		case claimed:
			list = append(list, l)
		}
	}
	return list, err
}
