package watch

import (
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/proc"
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
	if ticks(&c, alive, after) {
		t.Error("hung too early")
	}
	if !ticks(&c, alive, 1) {
		t.Error("not hung")
	}
	alive.TickMS = 2
	if ticks(&c, alive, 1) {
		t.Error("hung though it has ticked")
	}
	ticks(&c, alive, after-1)
	now = now.Add(8 * time.Hour)
	if ticks(&c, alive, 1) {
		t.Error("hung as the machine was suspended")
	}
	if ticks(&c, agent.Ticker{TickMS: 2}, after) {
		t.Error("a dead one hangs")
	}
}
