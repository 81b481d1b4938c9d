package server_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server/ats"

	"netsky/internal/testworld"
	"netsky/link/server"
)

// The clock of NATS's stores goes on while a home is served, and stands at whole steps of 10.2 s.
func TestStoreClock(t *testing.T) {
	w := newWorld(t, server.Local)
	w.serve()
	const step = 10200 * time.Millisecond
	first, began := ats.AccessTime(), time.Now()
	testworld.Wait(t, "the clock goes on", func() bool { return ats.AccessTime() != first })
	if at := time.Unix(0, ats.AccessTime()); !at.Equal(at.Truncate(step)) || at.Before(began.Add(-step)) {
		t.Errorf("%v is no whole step, or long ago", at)
	}
}
