package watch

import (
	"context"
	"encoding/json"
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

// page sends mail to the owner, in the name of the agent that it is about. The same id is
// told once. It reports whether the mail was sent.
func (l *loop) page(ctx context.Context, about agent.ID, id, text string) bool {
	return l.send(ctx, about, id, text, nil)
}

func (l *loop) send(ctx context.Context, about agent.ID, id, text string, extra map[string]json.RawMessage) bool {
	_, err := l.o.Launcher.Bus.Send(ctx, envelope.Envelope{
		ID: id, From: about, To: agent.Owner, Kind: envelope.KindNotice, Via: "code", Text: text, Time: time.Now(), Extra: extra,
	})
	if err != nil {
		l.o.Log.Warn("mail to the owner", "agent", about, "id", id, "error", err)
	}
	return err == nil
}

// An unsaid is mail to the owner that could not be sent yet.
type unsaid struct {
	about    agent.ID
	id, text string
}

const maxUnsaid = 20

// pageOnce is page for what happens once, and so never is on the list of what needs the owner:
// it is for their phone too. Mail that can't be sent now, as on a full disk, is sent later, as
// long as this process lives.
func (l *loop) pageOnce(ctx context.Context, about agent.ID, id, text string) {
	if !l.send(ctx, about, id, text, envelope.ToPhone()) && len(l.unsaid) < maxUnsaid {
		l.unsaid = append(l.unsaid, unsaid{about, id, text})
	}
}

// pageLate sends the first of what could not be sent.
func (l *loop) pageLate(ctx context.Context) {
	if len(l.unsaid) > 0 && l.send(ctx, l.unsaid[0].about, l.unsaid[0].id, l.unsaid[0].text, envelope.ToPhone()) {
		l.unsaid = l.unsaid[1:]
	}
}

func firstLine(err error) string { return envelope.Line(err.Error(), 300) }

func brief(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }
