package dashboard

import "netsky/store"

// A story is a timeline for a page.
type story struct {
	Events []moment
	More   bool
}

// A moment is one event of a story, with what the page says of it.
type moment struct {
	store.TimelineEvent
	Day   bool   // it is the first of its day
	After string // how long after the one before
	Says  string
	Link  string // to what it is about
	Quote bool   // its text is someone's words
	Step  bool   // it befell a message, at Actor
	Of    string // the message's words
	Hops  []hop  // what soon befell this message
}

// A hop is a step of a message that is told beside it.
type hop struct{ Word, After, Link, Why string }

// soon is how long after a message what befalls it is told beside it.
const soon = store.Time(60_000)

func storyOf(t store.Timeline) story {
	s := story{More: t.More}
	messages := map[string]int{} // where each stands
	var last store.Time
	for _, e := range t.Events {
		m := moment{TimelineEvent: e}
		m.tell()
		at, known := messages[e.Ref]
		if m.Step && known {
			of := &s.Events[at]
			if e.Kind == string(store.Answered) || e.Time-of.Time <= soon {
				of.hop(m)
				continue
			}
			m.Of = of.Text
		}
		if e.Kind == "message" {
			messages[e.Ref] = len(s.Events)
		}
		m.Day = last == 0 || last.Time().Local().YearDay() != e.Time.Time().Local().YearDay()
		if !m.Day && e.Time-last >= 1000 {
			m.After = elapsed(last, e.Time)
		}
		s.Events, last = append(s.Events, m), e.Time
	}
	return s
}

// hop tells a step beside its message. That it waited says nothing once it has
// gone on.
func (m *moment) hop(step moment) {
	if n := len(m.Hops); n > 0 && m.Hops[n-1].Word == string(store.Queued) {
		m.Hops = m.Hops[:n-1]
	}
	h := hop{Word: step.Kind, Link: step.Link}
	if step.Time > m.Time {
		h.After = elapsed(m.Time, step.Time)
	}
	if step.Kind != string(store.Answered) {
		h.Why = step.Text
	}
	m.Hops = append(m.Hops, h)
}

// befalls is what befalls a message on its way; an agent's name goes on from each.
var befalls = map[string]string{
	"queued": "waits in the inbox of", "claimed": "taken by", "delivered": "delivered to", "answered": "answered by",
	"failed": "failed at", "poisoned": "unreadable to", "cancelled": "taken back from", "expired": "expired at",
	"input_pending": "submitted to", "input_consumed": "taken up by", "input_cancelled": "not taken up by",
}

// tell says what the event is in words, and where it leads.
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
		m.Says, m.Link, m.Quote = "asked for a task", href("tasks", m.Ref), true
	case "task_started":
		m.Says, m.Link = "began the task", href("tasks", m.Ref)
	case "task_ended":
		m.Says, m.Link = "ended the task", href("tasks", m.Ref)
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
