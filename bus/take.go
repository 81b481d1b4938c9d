package bus

import (
	"context"
	"math"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
)

// Next waits for the next envelope, claims it and returns it: first what a dead holder had
// claimed, then the owner's mail, then the rest by time. On the way it poisons or files
// what cannot be handed over. Each call claims one; an envelope whose ID is still in hand
// waits. After an obeyed shutdown the error is ErrShutdown, after Close ErrClosed.
func (r *Receiver) Next(ctx context.Context) (*Delivery, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d, err := r.tryNext()
		if d != nil || err != nil {
			return d, err
		}
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-r.ready:
		}
		r.mu.Lock()
		r.waiting--
		r.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
}

// tryNext returns an envelope, or registers a waiter if there is none.
func (r *Receiver) tryNext() (d *Delivery, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() {
		if d == nil && err == nil {
			r.waiting++
		}
	}()
	switch {
	case r.closed:
		r.wake() // any other waiter
		return nil, ErrClosed
	case r.shut != nil && r.shut.obeyed:
		r.wake()
		return nil, ErrShutdown
	case r.shut != nil:
		return nil, nil // no new work before the end
	case r.given != nil:
		d, r.given = r.given, nil
	default:
		d = r.take(math.MaxInt, nil)
	}
	r.taken(d)
	return d, nil
}

// taken handles what is left behind d. The caller holds mu.
func (r *Receiver) taken(d *Delivery) {
	if d != nil && len(r.letters)+len(r.again) > 0 {
		r.wake() // for another Next
	}
	if len(r.letters) == 0 && r.more {
		r.prod()
	}
}

// take claims the first letter that can be handed over, of those that only accepts if it
// is set; nil if there is none or its rendering exceeds room bytes. A letter in trouble
// holds up later ones from the same sender, to keep their order, and no others. The caller
// holds mu.
func (r *Receiver) take(room int, only func(*letter) bool) *Delivery {
	troubled := make(map[agent.ID]bool)
	for _, list := range []*[]*letter{&r.again, &r.letters} {
		for i := 0; i < len(*list); {
			l := (*list)[i]
			if troubled[l.from] || only != nil && !only(l) {
				i++
				continue
			}
			d, fate := r.settle(l, room)
			if fate == tooLong {
				return nil
			}
			troubled[l.from] = fate == inTrouble && l.from != ""
			if fate == inTrouble && l.claimed && list == &r.letters {
				r.again = append(r.again, l) // it is in claimed/ now
				fate = settled
			}
			if fate != settled {
				i++
				continue
			}
			if i == 0 {
				*list = (*list)[1:]
			} else {
				*list = append((*list)[:i], (*list)[i+1:]...)
			}
			if d != nil {
				return d
			}
		}
	}
	return nil
}

// A fate is the outcome for a letter.
type fate int

const (
	settled   fate = iota // it has left its list
	waits                 // its turn has not come
	inTrouble             // the system refused; retried within a second
	tooLong               // for the room left
)

// settle claims a letter and decides its fate; d is set if it is to be handed over.
func (r *Receiver) settle(l *letter, room int) (d *Delivery, _ fate) {
	if !r.readable(l) {
		if l.sys != nil {
			return nil, inTrouble
		}
		return nil, waits
	}
	if l.env == nil { // gone, or poisoned
		return nil, settled
	}
	if _, busy := r.held[l.env.ID]; busy || r.controls(l) {
		return nil, waits
	}
	if room < math.MaxInt && !r.seen.Has(*l.env) && len(envelope.Render(*l.env, r.bus.now())) > room {
		return nil, tooLong
	}
	if !l.claimed {
		claimed, err := r.claim(l)
		if err != nil {
			r.trouble(l.name, "cannot claim "+l.name, err)
			return nil, inTrouble
		}
		if !claimed {
			return nil, settled
		}
	}
	d, ok := r.handOver(l)
	if !ok {
		return nil, inTrouble
	}
	return d, settled
}

// handOver disposes of a letter in claimed/; d is set if it is to be handed over.
func (r *Receiver) handOver(l *letter) (d *Delivery, ok bool) {
	d, err := r.dispose(l, r.bus.now())
	if d != nil {
		d.r = r
	}
	return d, !r.check(l.name, "cannot settle "+l.name, err)
}

// grab claims the first file of a listing before reading any, if a caller waits and the
// name, one that the bus made, shows that the file is complete. It saves waiting callers
// the time of reading.
func (r *Receiver) grab(found *batch, inbox int) {
	if r.waiting == 0 || r.given != nil || r.shut != nil || len(r.again) > 0 || len(found.head) == 0 {
		return
	}
	first := 0
	for i, c := range found.head {
		_, from, ours := envelope.NameParts(c.name)
		if !ours || r.known[c.name] != nil {
			return
		}
		if agent.ID(from).Local() == agent.Owner {
			first = i
			break
		}
	}
	c := found.head[first]
	to, err := r.use(&r.claimed)
	if err != nil {
		return
	}
	name, err := move(inbox, c.name, to)
	if err != nil {
		return // the slow path reports what is wrong
	}
	r.lastClaim = r.bus.now()
	l := &letter{candidate: candidate{c.ns, name}, claimed: true, ours: true}
	r.look(l, to)
	if l.bad != nil {
		if _, err := move(to, name, inbox); err == nil {
			return // judged on the slow path
		}
	}
	found.head = append(found.head[:first], found.head[first+1:]...)
	if l.env == nil || r.controls(l) || r.held[l.env.ID] != nil {
		r.again = append(r.again, l)
		return
	}
	var ok bool
	if r.given, ok = r.handOver(l); !ok {
		r.again = append(r.again, l)
	}
}

// Batch is Next for a runtime that accepts several at once: it waits for the first, which
// is handed over whatever its length, and claims with it what else can be handed over now,
// in the same order, up to max envelopes or bytes of renderings in total. The rest is left
// for the next call.
func (r *Receiver) Batch(ctx context.Context, max, bytes int) ([]*Delivery, error) {
	d, err := r.Next(ctx)
	if err != nil {
		return nil, err
	}
	list := []*Delivery{d}
	for bytes -= len(d.Rendered()); len(list) < max && bytes > 0; bytes -= len(d.Rendered()) {
		if d = r.another(bytes); d == nil {
			break
		}
		list = append(list, d)
	}
	return list, nil
}

// another claims one more message, if there is one and it fits.
func (r *Receiver) another(room int) *Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.shut != nil {
		return nil
	}
	d := r.given
	switch {
	case d == nil:
		d = r.take(room, nil)
	case len(d.Rendered()) > room:
		return nil
	default:
		r.given = nil
	}
	r.taken(d)
	return d
}

// lapse files what has expired while it waited, also if nobody calls Next, and returns when
// the next expires. It looks at no file that has not. The caller holds mu.
func (r *Receiver) lapse() time.Duration {
	wait, now := passEvery, r.bus.now()
	if r.given == nil { // if the clock is set back meanwhile, one is given out after all
		r.given = r.take(math.MaxInt, func(l *letter) bool {
			left := l.expires.Sub(now)
			if left > 0 {
				wait = min(wait, left)
			}
			return left <= 0 && !l.expires.IsZero() && r.readable(l) && (l.env == nil || !r.offered(*l.env))
		})
		r.taken(nil)
	}
	return wait
}
