package codex_test

import (
	"time"

	"netsky/agent"
	"netsky/bus/courier"
	"netsky/codex"
	"netsky/internal/testworld"
)

// A rig is a resident without a courier, and what it has reported.
type rig struct {
	*world
	courier.Runtime
	events courier.Source
	told   []courier.Event
	faults []agent.Report // with a Fault, while it was busy
}

func (w *world) mustRigWithin(o codex.ServeOptions, within time.Duration) *rig {
	w.Helper()
	program, events, stop, err := codex.StartResidentWithin(w.ctx, o, within)
	testworld.Must(w, err)
	w.Cleanup(stop)
	return &rig{world: w, Runtime: program, events: events}
}

func (r *rig) takes() {
	r.Helper()
	r.until("it takes mail", func() bool { return r.State(r.ctx).Takes })
}
