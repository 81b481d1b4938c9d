package server_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server/ats"

	"netsky/internal/testworld"
	"netsky/link/server"
)

// The clock of NATS's stores goes on while a home is served, but wakes an idle server once a second only.
func TestStoreClock(t *testing.T) {
	w := newWorld(t, server.Local)
	w.serve()
	const step = 1020 * time.Millisecond
	first, last, ticks := ats.AccessTime(), int64(0), 0
	testworld.Wait(t, "the clock goes on", func() bool {
		if now := ats.AccessTime(); now != last {
			last, ticks = now, ticks+1
			if at := time.Unix(0, now); ticks > 1 && !at.Equal(at.Truncate(step)) {
				t.Errorf("%v is between two steps", at)
			}
		}
		return last-first >= 3*int64(time.Second)
	})
	if ticks > 6 {
		t.Errorf("the clock has ticked %d times in 3 s", ticks)
	}
}
