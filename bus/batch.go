package bus

import "context"

// Batch is Next for a runtime that is given several at once: it waits for the
// first, which is handed over however long it is, and claims with it what else
// can be handed over now, in the same order, until there are max of them or the
// renderings would be longer than bytes together. What does not fit is left for
// the next call.
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

// another claims one more if there is one and it fits.
func (r *Receiver) another(room int) *Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.shut != nil {
		return nil
	}
	d := r.given
	switch {
	case d == nil:
		d = r.take(room)
	case len(d.Rendered()) > room:
		return nil
	default:
		r.given = nil
	}
	r.taken(d)
	return d
}
