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

// news is mail to the owner of what happens once.
type news struct {
	*Watchdog
	unsaid []unsaid // the oldest first
}

// send sends mail to the owner, in the name of the agent that it is about. The same id is told
// once. It reports whether the mail was sent.
func (n *news) send(ctx context.Context, u unsaid) bool {
	_, err := n.o.Launcher.Bus.Send(ctx, envelope.Envelope{
		ID: u.id, From: u.about, To: agent.Owner, Kind: envelope.KindNotice, Via: "code", Text: u.text, Time: time.Now(), Extra: envelope.ToPhone(),
	})
	if err != nil {
		n.o.Log.Warn("mail to the owner", "agent", u.about, "id", u.id, "error", err)
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
func (n *news) pageOnce(ctx context.Context, about agent.ID, id, text string) {
	if u := (unsaid{about, id, text}); !n.send(ctx, u) && len(n.unsaid) < maxUnsaid {
		n.unsaid = append(n.unsaid, u)
	}
}

// pageLate sends the first of what could not be sent.
func (n *news) pageLate(ctx context.Context) {
	if len(n.unsaid) > 0 && n.send(ctx, n.unsaid[0]) {
		n.unsaid = n.unsaid[1:]
	}
}

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
