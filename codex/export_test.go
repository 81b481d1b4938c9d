package codex

import (
	"context"
	"time"

	"netsky/bus/courier"
)

// StartResident is Serve without a courier; stop ends it.
func StartResident(ctx context.Context, o ServeOptions) (program courier.Runtime, events courier.Source, stop func(), err error) {
	return StartResidentWithin(ctx, o, openTime)
}

// StartResidentWithin is StartResident for a Codex that has so long to open the thread.
func StartResidentWithin(ctx context.Context, o ServeOptions, within time.Duration) (program courier.Runtime, events courier.Source, stop func(), err error) {
	r := newResident(o)
	if err := r.begin(ctx); err != nil {
		r.end()
		return nil, nil, nil, err
	}
	r.session.within = within
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		r.keep(ctx)
		close(over)
	}()
	return r, r.queue, func() { cancel(); <-over; r.end() }, nil
}

// WaitOut ends the time in which a full context keeps mail waiting.
func WaitOut(program courier.Runtime) {
	r := program.(*resident)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.full = time.Now()
}
