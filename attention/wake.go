package attention

import (
	"context"
	"fmt"
	"slices"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/store"
)

// wake gives agentinfinity what the owner was told, if it runs: at most Wakes times in 24 hours, as each costs a turn.
func (t *Teller) wake(ctx context.Context, s *standing, now time.Time) {
	if t.o.Wakes <= 0 || s.About == agent.Infinity || !t.awake() {
		return
	}
	recent := slices.DeleteFunc(t.mem.WokenMS, func(ms int64) bool {
		age := now.Sub(time.UnixMilli(ms))
		return age < 0 || age >= 24*time.Hour
	})
	id := "wake-" + s.mail(0)
	if t.mem.WokenMS = recent; len(recent) >= t.o.Wakes {
		t.event(ctx, id, store.LevelWarn, s.About, "", fmt.Sprintf("agentinfinity is not woken about it: it was %d times in 24 hours (`wakes` under [watchdog])", len(recent)))
		return
	}
	// The budget is spent first: a crash costs one wake, not a turn beyond the budget.
	t.mem.WokenMS = append(recent, now.UnixMilli())
	if err := t.save(); err != nil {
		t.o.Log.Warn("wake", "error", err)
		return
	}
	_, again, err := t.o.Bus.SendOnce(ctx, envelope.Envelope{
		ID: id, From: agent.Owner, To: agent.Infinity, Via: "code", Time: now,
		Text: "The watchdog reports, and the owner was told the same:\n" + envelope.SafeText(s.Text) +
			"\n`netsky watchdog events` shows what it saw and did. Find the cause; repair it if that is safe, and report.",
	})
	switch {
	case err != nil:
		t.o.Log.Warn("wake", "error", err)
	case !again:
		t.event(ctx, id, store.LevelInfo, s.About, id, fmt.Sprintf("agentinfinity is woken about it (%d of %d in 24 hours)", len(t.mem.WokenMS), t.o.Wakes))
	}
}

// awake reports whether agentinfinity runs, and does not hang.
func (t *Teller) awake() bool {
	list, _ := t.o.Agents()
	return slices.ContainsFunc(list, func(a Seen) bool { return a.ID == agent.Infinity && a.Alive && a.State != agent.Hung })
}
