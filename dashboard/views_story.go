package dashboard

import (
	"slices"
	"strings"

	"netsky/agent"
	"netsky/store"
)

// A story is a timeline for a page.
type story struct {
	Events []moment
	More   bool
}

// A moment is one event of a story, as the page words it.
type moment struct {
	store.TimelineEvent
	Day   bool   // the first of its day
	After string // how long after the one before
	Says  string
	Link  string // to what it is about
	Quote bool   // its text was written by someone
	Step  bool   // it happened to what Ref names, at Actor
	Focus bool   // the page is about it
	Hops  []hop  // what happened to it
}

// A hop is a step of a message or a task, shown beside it.
type hop struct {
	Word, After, Link, Why string
	Actor                  agent.ID
	Time                   store.Time
}

// ID is the id that the record templates expect.
func (m moment) ID() string { return m.Ref }

// Came is the hop with the final state. An agent may answer before its message is filed
// as delivered.
func (m moment) Came() hop {
	for _, h := range m.Hops {
		if h.Word == string(store.Answered) {
			return h
		}
	}
	return m.Hops[len(m.Hops)-1]
}

// storyOf groups a timeline into events, each with its steps, so that a text is shown
// once. Focus is what the page is about.
func storyOf(t store.Timeline, focus string) story {
	s := story{More: t.More}
	known := map[string]int{} // index of each message and task
	var last store.Time
	for _, e := range t.Events {
		m := moment{TimelineEvent: e, Focus: e.Kind == "message" && e.Ref == focus}
		m.tell()
		key := kindOfRef(e.Kind) + e.Ref
		if at, there := known[key]; m.Step && there {
			s.Events[at].hop(m)
			continue
		}
		if e.Kind == "message" || e.Kind == "task_created" {
			known[key] = len(s.Events)
		}
		m.Day = last == 0 || last.Time().Local().YearDay() != e.Time.Time().Local().YearDay()
		if !m.Day && e.Time-last >= 1000 {
			m.After = elapsed(last, e.Time)
		}
		s.Events, last = append(s.Events, m), e.Time
	}
	return s
}

// Has reports whether the story contains the message.
func (s story) Has(id string) bool {
	return slices.ContainsFunc(s.Events, func(m moment) bool { return m.Kind == "message" && m.Ref == id })
}

func kindOfRef(kind string) string {
	if strings.HasPrefix(kind, "task_") {
		return "task "
	}
	return "message "
}

// hop adds a step to its message or task.
func (m *moment) hop(step moment) {
	h := hop{Word: step.Kind, Link: step.Link, Actor: step.Actor, Time: step.Time}
	if step.Time > m.Time {
		h.After = elapsed(m.Time, step.Time)
	}
	switch step.Kind {
	case string(store.Answered):
	case "task_started":
		h.Word = "started"
	case "task_ended":
		h.Word, h.Why = "ended", ""
		if word := strings.TrimSpace(step.Text); word != "" {
			h.Word = excerpt(40, word)
		}
	default:
		h.Why = step.Text
	}
	m.Hops = append(m.Hops, h)
}

// befalls words the steps of a delivery; each is followed by an agent's name.
var befalls = map[string]string{
	"queued": "waits in the inbox of", "sent": "on its way to", "arrived": "in the inbox of", "claimed": "taken by", "delivered": "delivered to", "answered": "answered by",
	"failed": "failed at", "poisoned": "unreadable to", "cancelled": "taken back from", "expired": "expired at",
	"input_pending": "submitted to", "input_consumed": "taken up by", "input_cancelled": "not taken up by",
	"phone_heard": "read from the phone of", "phone_waits": "waits to be texted to", "phone_sent": "texted to",
	"phone_unconfirmed": "texted, unconfirmed, to", "phone_failed": "could not be texted to", "phone_dropped": "not texted to",
}

// tell sets the event's words and its link.
func (m *moment) tell() {
	m.Link = href("messages", m.Ref)
	switch m.Kind {
	case "message":
		m.Says, m.Quote = "wrote", true
	case "session_start":
		m.Says, m.Link = "started", href("sessions", m.Ref)
	case "session_end":
		m.Says, m.Link = "ended", href("sessions", m.Ref)
	case "task_created":
		m.Says, m.Link = "asked for a task", href("tasks", m.Ref)
	case "task_started":
		m.Says, m.Link, m.Step = "started the task", href("tasks", m.Ref), true
	case "task_ended":
		m.Says, m.Link, m.Step = "ended the task", href("tasks", m.Ref), true
	case "note":
		m.Says, m.Link, m.Quote = "noted", "", true
	case "log":
		if m.Link = ""; m.Ref != "" {
			m.Link = where(m.Ref)
		}
	default:
		m.Step = true
		if m.Says = befalls[m.Kind]; m.Says == "" {
			m.Says = m.Kind + " at"
		}
		if m.Kind == string(store.Answered) {
			m.Link = href("messages", m.Text)
		}
	}
}
