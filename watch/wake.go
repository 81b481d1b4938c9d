package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/store"
)

const wakesFile = "state/watchdog/wakes.json"

// wake gives agentinfinity what the owner was told about an agent, if it runs: once about
// each event, and at most Wakes times in 24 hours, as each costs a turn.
func (l *loop) wake(ctx context.Context, about agent.ID, event, text string) {
	h, now := l.o.Launcher.Home, time.Now()
	w := l.wards[agent.Infinity]
	if l.o.Wakes <= 0 || about == agent.Infinity || w == nil || !w.Alive() || w.State == agent.Hung {
		return
	}
	times, err := home.Load[[]int64](h, wakesFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.o.Log.Warn("wake", "error", err) // it starts anew
	}
	var recent []int64
	for _, ms := range times {
		if age := now.Sub(time.UnixMilli(ms)); age >= 0 && age < 24*time.Hour {
			recent = append(recent, ms)
		}
	}
	id := "wake-" + event
	if len(recent) >= l.o.Wakes {
		l.event(ctx, id, store.LevelWarn, about, "", fmt.Sprintf("agentinfinity is not woken about it: it was %d times in 24 hours (`wakes` under [watchdog])", len(recent)))
		return
	}
	// The budget is spent first: a crash costs one wake, not a turn beyond the budget.
	if err := h.Save(wakesFile, append(recent, now.UnixMilli()), true); err != nil {
		l.o.Log.Warn("wake", "error", err)
		return
	}
	_, again, err := l.o.Launcher.Bus.SendOnce(ctx, envelope.Envelope{
		ID: id, From: agent.Owner, To: agent.Infinity, Via: "code", Time: now,
		Text: "The watchdog reports, and the owner was told the same:\n" + envelope.SafeText(text) +
			"\n`netsky watchdog events` shows what it saw and did. Find the cause; repair it if that is safe, and report.",
	})
	switch {
	case err != nil:
		l.o.Log.Warn("wake", "error", err)
	case !again:
		l.event(ctx, id, store.LevelInfo, about, id, fmt.Sprintf("agentinfinity is woken about it (%d of %d in 24 hours)", len(recent)+1, l.o.Wakes))
	}
}
