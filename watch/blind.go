package watch

import (
	"context"
	"fmt"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/store"
)

// blindAfter is how long looks at the agents must have failed before the owner is told: a
// busy machine fails one.
const blindAfter = 10 * time.Second

// A blindWatch is what is known of looks that fail, because no process can be started, say.
type blindWatch struct {
	since time.Time // of the first that failed; zero: the last one did not
	told  attention.Blind
	read  bool // told was read from its file
}

// seen takes how a look went. As long as looks fail, nothing is done about any agent's
// death, hang or mail, so the owner is told, and of the end of it.
func (l *loop) seen(ctx context.Context, err error) {
	b, h := &l.blind, l.o.Launcher.Home
	if !b.read {
		b.told, b.read = attention.LoadBlind(h), true
	}
	if err == nil {
		b.since = time.Time{}
		if b.told.Why == "" {
			return
		}
		if err := attention.SaveBlind(h, attention.Blind{}); err != nil {
			l.o.Log.Warn("look", "error", err)
			return
		}
		id := blindID(b.told)
		l.event(ctx, id+"-over", store.LevelInfo, "", "", "sees the agents again")
		if err := l.settled(id); err != nil {
			l.o.Log.Warn("look", "mail", id, "error", err)
		}
		b.told = attention.Blind{}
		return
	}
	now := time.Now()
	if b.since.IsZero() {
		b.since = now
	}
	if b.told.Why != "" || now.Sub(b.since) < blindAfter {
		return
	}
	told := attention.Blind{SinceMS: b.since.UnixMilli(), Why: firstLine(err)}
	if err := attention.SaveBlind(h, told); err != nil {
		l.o.Log.Warn("look", "error", err) // the next one that fails tries again
		return
	}
	b.told = told
	l.event(ctx, blindID(told), store.LevelError, "", "", "can't look after the agents: "+told.Why)
	l.pageOnce(ctx, agent.Root, blindID(told), "netsky can't look after the agents: "+told.Why+
		"\nUntil it can, none that dies is started again, and you are told of none that hangs. `netsky doctor` looks for the cause.")
}

func blindID(b attention.Blind) string { return fmt.Sprintf("blind-%d", b.SinceMS) }
