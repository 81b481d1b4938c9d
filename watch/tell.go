package watch

import (
	"context"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/store"
)

// event records what the watchdog saw or did, once by its key.
func (l *loop) event(ctx context.Context, key, level string, id agent.ID, about, text string) {
	l.o.Log.Info("event", "agent", id, "text", text)
	l.o.Records.Record(ctx, store.AddLog{Key: key, Level: level, Part: Part, Actor: id, About: about, Text: text})
}

// Part is the part of netsky that the records name for what the watchdog saw and did.
const Part = "watchdog"

func firstLine(err error) string { return envelope.Line(err.Error(), 300) }

func brief(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }
