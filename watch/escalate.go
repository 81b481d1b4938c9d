package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/store"
)

const (
	escalatedFile = "state/watchdog/escalated.json"
	escalateEvery = 2 * time.Second
	// escalateAfter is how long mail that needs the owner stays unread before they are
	// reached outside of netsky, escalateRest the time between two alerts; an approval does
	// not wait for it.
	escalateAfter, escalateRest = 5 * time.Second, time.Minute
	// escalateWithin is how old such mail may be: a way that was configured yesterday is no
	// reason to repeat last week.
	escalateWithin = time.Hour
	escalatedKept  = 1000 // ids
)

// An escalation reaches the owner outside of netsky about mail that needs them: approvals,
// dialogs and what the watchdog itself has sent. It is told once about each.
type escalation struct {
	done map[string]int64             // ids, and when in milliseconds; nil: not read yet
	mail map[string]envelope.Envelope // unread files, by name
	last time.Time                    // the latest alert
	busy bool
}

// escalate alerts the owner to unread mail that needs them.
func (l *loop) escalate(ctx context.Context) {
	e := &l.alerts
	if l.o.Escalate == nil || e.busy {
		return
	}
	now := time.Now()
	if err := l.openEscalated(); err != nil {
		l.o.Log.Warn("escalation", "error", err)
	}
	due, urgent, err := l.dueAlerts(now)
	if err != nil {
		l.o.Log.Warn("escalation", "error", err)
		return
	}
	if len(due) == 0 || !urgent && now.Sub(e.last) < escalateRest {
		return
	}
	subject, body := alertText(due)
	e.busy, e.last = true, now
	l.works.Go(func() {
		by, err := l.o.Escalate(ctx, subject, body)
		over := func() {
			e.busy = false
			l.escalated(ctx, due, by, err)
		}
		select {
		case l.done <- over:
		case <-ctx.Done():
		}
	})
}

// openEscalated reads what the owner was alerted to. Without it they are alerted again.
func (l *loop) openEscalated() (err error) {
	e := &l.alerts
	if e.done != nil {
		return nil
	}
	e.done, err = home.Load[map[string]int64](l.o.Launcher.Home, escalatedFile)
	if e.done == nil {
		e.done = make(map[string]int64)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// dueAlerts returns the unread mail that the owner is to be alerted to now, the oldest
// first. urgent reports that some of it is an agent's question.
func (l *loop) dueAlerts(now time.Time) (due []envelope.Envelope, urgent bool, err error) {
	e, b := &l.alerts, l.o.Launcher.Bus
	names, err := b.Mail(agent.Owner, true)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, bus.ErrNoMailbox) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	known := make(map[string]envelope.Envelope, len(names))
	var fresh []string
	for _, name := range names {
		if m, ok := e.mail[name]; ok {
			known[name] = m
		} else {
			fresh = append(fresh, name)
		}
	}
	list, err := b.FindAll(agent.Owner, fresh)
	for _, m := range list {
		if m.Err == nil {
			m.Envelope.Text = envelope.Shorten(m.Envelope.Text, 2000)
			known[m.Name] = m.Envelope
		}
	}
	e.mail = known
	for _, name := range slices.Sorted(maps.Keys(known)) {
		m := known[name]
		age := now.Sub(m.Time)
		if m.Kind != envelope.KindApproval && m.Kind != envelope.KindNotice || e.done[m.ID] != 0 || age < escalateAfter || age > escalateWithin || l.seesPane(m.From) {
			continue
		}
		due = append(due, m)
		urgent = urgent || m.RequiresAck || strings.HasPrefix(m.ID, "approval-") // which no agent can use
	}
	return due, urgent, err
}

// seesPane reports whether somebody is attached to the agent's pane, and so sees what it
// waits for.
func (l *loop) seesPane(id agent.ID) bool {
	w := l.wards[id]
	return w != nil && w.Watched()
}

func alertText(due []envelope.Envelope) (subject, body string) {
	subject = "netsky: " + envelope.Line(said(due[0]), 150)
	if n := len(due); n > 1 {
		subject = fmt.Sprintf("netsky: %d things need you", n)
	}
	var texts []string
	for _, m := range due {
		texts = append(texts, said(m))
	}
	return subject, strings.Join(texts, "\n\n")
}

// said is the text of a message, with its sender if that is not netsky itself.
func said(m envelope.Envelope) string {
	if m.Via != "code" {
		return string(m.From) + " writes: " + m.Text
	}
	return m.Text
}

// escalated records how an alert went. One that reached nobody is not repeated: status
// shows that it failed.
func (l *loop) escalated(ctx context.Context, due []envelope.Envelope, by string, err error) {
	e, now := &l.alerts, time.Now()
	for _, m := range due {
		e.done[m.ID] = now.UnixMilli()
		level, text := store.LevelInfo, "you were alerted by "+by
		if err != nil {
			level, text = store.LevelError, "you could not be alerted: "+firstLine(err)
		}
		l.event(ctx, "escalated-"+m.ID, level, m.From, m.ID, text+": "+envelope.Line(m.Text, 100))
	}
	for len(e.done) > escalatedKept {
		oldest := ""
		for id, ms := range e.done {
			if oldest == "" || ms < e.done[oldest] {
				oldest = id
			}
		}
		delete(e.done, oldest)
	}
	if err := l.o.Launcher.Home.Save(escalatedFile, e.done, false); err != nil {
		l.o.Log.Warn("escalation", "error", err)
	}
}
