package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/home"
	"netsky/store"
)

const (
	// checkEvery is how often the records are asked what they think waits, even when no
	// file is gone.
	checkEvery = 30 * time.Second
	// settleTime is how long a file may wait for its .why, and a record for its file.
	settleTime = 2 * time.Second
)

// pass brings one mailbox up to date.
func (o *Observer) pass(ctx context.Context, b *box) error {
	if !b.held { // else what a pass before has missed is looked for once all is read
		b.gone, b.arrived = make(map[uint64]bool), make(map[uint64]bool)
	}
	b.held = false
	for _, at := range bus.Places() {
		p := b.places[at]
		if err := o.look(ctx, b, at, p); err != nil {
			p.seen = home.Mark{} // so that the next pass reads it
			return fmt.Errorf("%s of %s: %w", at, b.id, err)
		}
		if len(p.waiting) > 0 && (at == bus.Delivered || at == bus.Poison) {
			o.later = true // a file written to another place gives a hint
		}
	}
	if b.held {
		o.later = true
		return nil
	}
	return o.settleMissing(ctx, b)
}

// look lists one directory if it has changed, and records what is new in it.
func (o *Observer) look(ctx context.Context, b *box, at bus.Place, p *place) error {
	now := o.DB.Home().Mark(home.Mailbox(b.id), string(at))
	if now.Exists() && p.seen.Same(now) && len(p.waiting) == 0 {
		return nil
	}
	names, err := o.Bus.Names(b.id, at)
	if err != nil && !errors.Is(err, bus.ErrNoMailbox) { // one of its places may be missing
		return err
	}
	o.forget(b, at, p, names)
	if at == bus.Delivered && !p.seen.Exists() && len(p.known) == 0 {
		if err := o.remember(ctx, b.id, p, names); err != nil {
			return err
		}
	}
	w := writer{o: o, box: b, known: p.known, names: make(map[uint64]uint64)}
	waiting := make(map[uint64]mark)
	for _, name := range names {
		h := o.hash(name)
		if _, ok := p.known[h]; ok {
			continue
		}
		if o.holds(b.id, name) {
			waiting[h], b.held = mark{}, true
			continue
		}
		m := o.statFile(b.id, at, name)
		if was, ok := p.waiting[h]; ok && m == was && at != bus.Delivered && at != bus.Poison {
			waiting[h] = m
			continue
		}
		f, err := o.read(ctx, b.id, at, name, m)
		if err != nil {
			return err
		}
		if f.ours {
			p.known[h] = 0
		}
		if f.unsettled {
			waiting[h] = m
			b.arrived[f.whose] = true
		}
		if err := w.add(ctx, h, f); err != nil {
			return err
		}
	}
	if err := w.flush(ctx); err != nil {
		return err
	}
	p.waiting, p.seen = waiting, now
	return nil
}

// forget drops the names that are no longer there.
func (o *Observer) forget(b *box, at bus.Place, p *place, names []string) {
	still := 0
	for _, name := range names {
		if _, ok := p.known[o.hash(name)]; ok {
			still++
		}
	}
	if still == len(p.known) {
		return
	}
	known := make(map[uint64]uint64, still)
	for _, name := range names {
		h := o.hash(name)
		if whose, ok := p.known[h]; ok {
			known[h] = whose
		}
	}
	if at == bus.Inbox || at == bus.Claimed || at == bus.Poison {
		for h, whose := range p.known {
			if _, ok := known[h]; !ok {
				b.gone[whose] = true
			}
		}
	}
	p.known = known
}

// A writer records what was read, in transactions of limited size, and remembers a name
// once it is recorded.
type writer struct {
	o     *Observer
	box   *box
	known map[uint64]uint64

	ops   []store.Op
	tells []told
	bytes int
	names map[uint64]uint64
}

// Size of one transaction: others wait for it, and it is in memory.
const (
	maxOps   = 512
	maxBytes = 1 << 20
)

func (w *writer) add(ctx context.Context, name uint64, f found) error {
	if len(f.ops) == 0 {
		return nil
	}
	w.ops, w.tells, w.names[name] = append(w.ops, f.ops...), append(w.tells, f.tells...), f.whose
	if w.bytes += f.bytes; len(w.ops) < maxOps && w.bytes < maxBytes {
		return nil
	}
	return w.flush(ctx)
}

func (w *writer) flush(ctx context.Context) error {
	if err := w.o.record(ctx, w.ops, w.tells); err != nil {
		return err
	}
	for name, whose := range w.names {
		w.known[name] = whose
		w.box.arrived[whose] = true
	}
	clear(w.names)
	w.ops, w.tells, w.bytes = w.ops[:0], w.tells[:0], 0
	return nil
}

// settleMissing cancels deliveries that the records have as waiting without a file in
// inbox/ or claimed/, or as poisoned without one in poison/. It takes two passes that
// agree, as a file moved back from claimed/ to inbox/ between the two listings is in
// neither once; and some time, as a sender may record a message before its file is there.
func (o *Observer) settleMissing(ctx context.Context, b *box) error {
	for whose := range b.arrived {
		delete(b.gone, whose)
	}
	if len(b.gone) == 0 && len(b.missing) == 0 && time.Since(b.checked) < checkEvery {
		return nil
	}
	waiting, err := o.DB.Waiting(ctx, b.id)
	if err != nil {
		return err
	}
	there := make(map[uint64]bool)
	for _, at := range bus.Pending() {
		for _, whose := range b.places[at].known {
			there[whose] = true
		}
	}
	missing := make(map[uint64]bool)
	var ops []store.Op
	var tells []told
	cancel := func(d store.UpsertDelivery) {
		d.State, d.Time = store.Cancelled, store.At(time.Now())
		ops, tells = append(ops, d), append(tells, tellsOf(d)...)
	}
	for _, d := range waiting {
		whose := o.hash(d.Message, string(d.From))
		switch {
		case d.Filed == store.Claimed && b.id.Host() != "": // there
		case there[whose] || b.arrived[whose]:
		case !b.missing[whose] || time.Since(d.Changed.Time()) < settleTime:
			missing[whose] = true
			o.later = true
		default:
			cancel(store.UpsertDelivery{Message: d.Message, From: d.From, Target: b.id, Attempts: d.Attempts, Reason: "removed from the mailbox"})
		}
	}
	poisoned, err := o.poisoned(ctx, b)
	if err != nil {
		return err
	}
	lies := o.inPoison(poisoned)
	for _, d := range poisoned {
		whose := o.hash(d.Message, string(d.From))
		switch {
		case lies[whose] || b.arrived[whose]:
		case !b.missing[whose] || time.Since(d.Changed.Time()) < settleTime:
			missing[whose] = true
			o.later = true
		default: // a new attempt, as within one a poisoned delivery stays poisoned
			cancel(store.UpsertDelivery{Message: d.Message, From: d.From, Target: d.Target, Attempts: d.Attempts + 1, Reason: "removed from poison/"})
		}
	}
	lost, err := o.lost(ctx, b.id)
	if err != nil {
		return err
	}
	if err := o.record(ctx, append(ops, lost...), tells); err != nil {
		return err
	}
	b.missing, b.checked = missing, time.Now()
	return nil
}

// poisoned returns the deliveries that the records have as poisoned and whose file the
// mailbox may hold: those to it, and those from its outbox; of what is for another host, that host
// knows more.
func (o *Observer) poisoned(ctx context.Context, b *box) (all []store.Delivery, err error) {
	for _, f := range []store.DeliveryFilter{{Target: b.id, State: store.Poisoned}, {From: b.id, State: store.Poisoned}} {
		for {
			l, err := o.DB.Deliveries(ctx, f)
			if err != nil {
				return nil, err
			}
			all = append(all, slices.DeleteFunc(l.Items, func(d store.Delivery) bool { return d.Target.Host() != "" })...)
			if l.Cursor == "" {
				break
			}
			f.Cursor = l.Cursor
		}
	}
	return all, nil
}

// inPoison returns the messages with a file in poison/ of one of the mailboxes.
func (o *Observer) inPoison(all []store.Delivery) map[uint64]bool {
	there, asked := make(map[uint64]bool), make(map[agent.ID]bool)
	for _, d := range all {
		for _, id := range []agent.ID{d.Target, d.From} {
			if b := o.boxes[id]; b != nil && !asked[id] {
				for _, whose := range b.places[bus.Poison].known {
					there[whose] = true
				}
			}
			asked[id] = true
		}
	}
	return there
}
