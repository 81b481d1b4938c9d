package watch

import (
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/proc"
	"netsky/internal/testworld"
)

// A ticker hangs if it lives and has not ticked for long, as this process counts it.
func TestTickerHung(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	ticks := func(c *tickerWatch, k agent.Ticker, checks int) (hung bool) {
		for range checks {
			hung = c.hung(k, time.Minute, now)
			now = now.Add(tickerEvery)
		}
		return hung
	}
	alive := agent.Ticker{Process: proc.Self(), TickMS: 1}
	after := int((3*time.Minute + tickerStale) / tickerEvery)
	var c tickerWatch
	testworld.Equal(t, ticks(&c, alive, after), false, "hung too early")
	testworld.Equal(t, ticks(&c, alive, 1), true, "not hung")
	alive.TickMS = 2
	testworld.Equal(t, ticks(&c, alive, 1), false, "hung though it has ticked")
	ticks(&c, alive, after-1)
	now = now.Add(8 * time.Hour)
	testworld.Equal(t, ticks(&c, alive, 1), false, "hung as the machine was suspended")
	testworld.Equal(t, ticks(&c, agent.Ticker{TickMS: 2}, after), false, "a dead one hangs")
}
