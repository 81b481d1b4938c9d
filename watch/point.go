package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"netsky/bus"
	"netsky/home"
	"netsky/store"
)

// A mailWatch says when a silent agent was last checked, and the state of its mailbox
// then.
type mailWatch struct {
	hints uint64
	boxes [2]home.Mark
	again time.Time
}

// A pointer tells agents of their mail whose programs know nothing of netsky.
type pointer struct{ *team }

// point tells an agent whose program knows nothing of netsky about its mail, by a line in
// its pane. While no mail arrives it does nothing for a minute at a time.
func (l *pointer) point(ctx context.Context, w *ward) {
	m := &w.mail
	if !w.Silent || w.working || !w.Alive() {
		return
	}
	hints, err := l.roster.hinted(ctx)
	early := time.Now().Before(m.again)
	if err != nil || early && hints == m.hints && m.boxes[0].Settled() && m.boxes[1].Settled() {
		return
	}
	same := true
	for i, place := range []bus.Place{bus.Inbox, bus.Claimed} {
		now := l.o.Launcher.Home.Mark(home.Mailbox(w.Agent), string(place))
		same = same && m.boxes[i].Same(now)
		m.boxes[i] = now
	}
	m.hints = hints
	if same && early {
		return
	}
	id, start := w.Agent, w.Start
	l.work(ctx, w, func(ctx context.Context) func() {
		r, err := l.o.Launcher.Point(ctx, id)
		log := l.o.Log.With("agent", id)
		switch {
		case err != nil:
		case r.Told > 0:
			log.Info("point", "messages", r.Told, "times", r.Times)
			entry := store.AddLog{
				Part: "daemon", Actor: id, About: start, Text: fmt.Sprintf("told of waiting mail (%d) by a line in its pane", r.Told),
			}
			if r.Last {
				entry.Level = store.LevelWarn
				entry.Text += fmt.Sprintf(" %d times, and has taken none so far; it is told no more until some is taken", r.Times)
			}
			if r.Times == 1 || r.Last { // those between say nothing new
				l.o.Records.Record(ctx, entry)
			}
		case r.New:
			log.Info("not told of its mail", "why", r.Held)
		}
		return func() {
			w.mail.again = time.Now().Add(r.Again)
			if errors.Is(err, fs.ErrNotExist) {
				err = nil // it is ending
			}
			l.failed(ctx, w, "point", err)
		}
	})
}
