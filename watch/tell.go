package watch

import (
	"context"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus/envelope"
	"netsky/store"
)

// event records what the watchdog saw or did, once by its key.
func (w *Watchdog) event(ctx context.Context, key, level string, id agent.ID, about, text string) {
	w.o.Log.Info("event", "agent", id, "text", text)
	w.o.Records.Record(ctx, store.AddLog{Key: key, Level: level, Part: Part, Actor: id, About: about, Text: text})
}

// Part is the part of netsky that the records name for what the watchdog saw and did.
const Part = "watchdog"

func firstLine(err error) string { return envelope.Line(err.Error(), 300) }

func brief(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }

// blindAfter is how long looks at the agents must have failed before the owner is told: a
// busy machine fails one.
const blindAfter = 10 * time.Second

// A blindWatch is what is known of looks that fail, because no process can be started, say.
type blindWatch struct {
	*Watchdog
	since time.Time // of the first that failed; zero: the last one did not
	told  attention.Blind
	read  bool // told was read from its file
}

// seen takes how a look went. As long as looks fail, nothing is done about any agent's
// death, hang or mail, so the owner has to know, and of the end of it.
func (b *blindWatch) seen(ctx context.Context, err error) {
	h := b.o.Launcher.Home
	if !b.read {
		b.told, b.read = attention.LoadBlind(h), true
	}
	if err == nil {
		b.since = time.Time{}
		if b.told.Why == "" {
			return
		}
		if err := attention.SaveBlind(h, attention.Blind{}); err != nil {
			b.o.Log.Warn("look", "error", err)
			return
		}
		b.event(ctx, b.told.ID()+"-over", store.LevelInfo, "", "", "sees the agents again")
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
		b.o.Log.Warn("look", "error", err) // the next one that fails tries again
		return
	}
	b.told = told
	b.event(ctx, told.ID(), store.LevelError, "", "", "can't look after the agents: "+told.Why)
}
