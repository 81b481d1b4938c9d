package bus

import (
	"context"
	"errors"
	"math"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
)

// ErrLeave is returned by a Drain's take for an envelope that should stay in the inbox.
var ErrLeave = errors.New("left in the inbox")

// Drain takes the mailbox's lock while it runs (the error matches agent.ErrLocked if a
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
	r.passing = true
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
		if len(r.queue) == 0 && (r.stale || r.more) {
			if err := r.scan(); err != nil {
				return nil, err
			}
		}
		r.judge()
		r.sortOut(&r.again)
		r.sortOut(&r.queue)
		if d := r.take(math.MaxInt, nil); d != nil {
			return d, nil
		}
		if !r.stale {
			return nil, nil
		}
	}
}
