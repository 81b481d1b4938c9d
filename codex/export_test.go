package codex

import (
	"context"

	"netsky/bus/courier"
)

// StartResident is Serve without a courier; stop ends it.
func StartResident(ctx context.Context, o ServeOptions) (program courier.Runtime, events courier.Source, stop func(), err error) {
	r := newResident(o)
	if err := r.begin(ctx); err != nil {
		r.end()
		return nil, nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		r.keep(ctx)
		close(over)
	}()
	return r, r.queue, func() { cancel(); <-over; r.end() }, nil
}
