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

// send sends mail to the owner, in the name of the agent that it is about. The same id is told
// once. It reports whether the mail was sent.
func (l *loop) send(ctx context.Context, u unsaid) bool {
	_, err := l.o.Launcher.Bus.Send(ctx, envelope.Envelope{
		ID: u.id, From: u.about, To: agent.Owner, Kind: envelope.KindNotice, Via: "code", Text: u.text, Time: time.Now(), Extra: envelope.ToPhone(),
	})
	if err != nil {
		l.o.Log.Warn("mail to the owner", "agent", u.about, "id", u.id, "error", err)
	}
	return err == nil
}

// An unsaid is mail to the owner that could not be sent yet.
type unsaid struct {
	about    agent.ID
	id, text string
}

const maxUnsaid = 20

// pageOnce tells the owner of what happens once, and so never is on the list of what needs them: it
// is for their phone too. Mail that can't be sent now, as on a full disk, is sent later, as long as
// this process lives.
func (l *loop) pageOnce(ctx context.Context, about agent.ID, id, text string) {
	if u := (unsaid{about, id, text}); !l.send(ctx, u) && len(l.unsaid) < maxUnsaid {
		l.unsaid = append(l.unsaid, u)
	}
}

// pageLate sends the first of what could not be sent.
func (l *loop) pageLate(ctx context.Context) {
	if len(l.unsaid) > 0 && l.send(ctx, l.unsaid[0]) {
		l.unsaid = l.unsaid[1:]
	}
}

func firstLine(err error) string { return envelope.Line(err.Error(), 300) }

func brief(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }
