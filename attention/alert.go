package attention

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
	"netsky/store"
)

const (
	// escalateAfter is how long mail that needs the owner stays unread before they are
	// reached outside of netsky, escalateRest the time between two alerts; an approval does
	// not wait for it.
	escalateAfter, escalateRest = 5 * time.Second, time.Minute
	// escalateWithin is how old such mail may be: a way that was configured yesterday is no
	// reason to repeat last week.
	escalateWithin = time.Hour
	escalatedKept  = 1000 // ids
)

// An escalation reaches the owner outside of netsky about unread mail that needs them: approvals, dialogs and what
// the teller itself has sent. It is told once about each.
type escalation struct {
	mail map[string]envelope.Envelope // unread files, by name
	last time.Time                    // the latest alert
	over chan func()                  // gets what to do after it; nil: none is being sent
}

// escalate alerts the owner to unread mail that needs them, beside the loop.
func (t *Teller) escalate(ctx context.Context) error {
	e := &t.alerts
	if t.o.Escalate == nil || e.over != nil {
		return nil
	}
	now := time.Now()
	due, urgent, err := t.dueAlerts(now)
	if err != nil || len(due) == 0 || !urgent && now.Sub(e.last) < escalateRest {
		return err
	}
	subject, body := alertText(due)
	over := make(chan func(), 1)
	e.over, e.last = over, now
	go func() {
		by, err := t.o.Escalate(ctx, subject, body)
		over <- func() {
			e.over = nil
			t.escalated(ctx, due, by, err)
		}
	}()
	return nil
}

// dueAlerts returns the unread mail that the owner is to be alerted to now, the oldest
// first. urgent reports that some of it is an agent's question.
func (t *Teller) dueAlerts(now time.Time) (due []envelope.Envelope, urgent bool, err error) {
	e, b := &t.alerts, t.o.Bus
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
		if m.Kind != envelope.KindApproval && m.Kind != envelope.KindNotice || t.mem.Alerted[m.ID] != 0 || age.Abs() < escalateAfter || age > escalateWithin || t.attended(m.From) {
			continue
		}
		due = append(due, m)
		urgent = urgent || m.RequiresAck || strings.HasPrefix(m.ID, "approval-") // which no agent can use
	}
	return due, urgent, err
}

// attended reports whether somebody is attached to the agent's pane, and so sees what it waits for.
func (t *Teller) attended(id agent.ID) bool {
	list, _ := t.o.Agents()
	return slices.ContainsFunc(list, func(a Seen) bool { return a.ID == id && a.Attended })
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
func (t *Teller) escalated(ctx context.Context, due []envelope.Envelope, by string, err error) {
	if t.mem.Alerted == nil {
		t.mem.Alerted = make(map[string]int64)
	}
	done := t.mem.Alerted
	for _, m := range due {
		done[m.ID] = time.Now().UnixMilli()
		level, text := store.LevelInfo, "you were alerted by "+by
		if err != nil {
			level, text = store.LevelError, "you could not be alerted: "+envelope.Line(err.Error(), 300)
		}
		t.event(ctx, "escalated-"+m.ID, level, m.From, m.ID, text+": "+envelope.Line(m.Text, 100))
	}
	for len(done) > escalatedKept {
		oldest := ""
		for id, ms := range done {
			if oldest == "" || ms < done[oldest] {
				oldest = id
			}
		}
		delete(done, oldest)
	}
	t.failed("memory", t.save())
}
