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
}

func storyOf(t store.Timeline) story {
	s := story{More: t.More}
	var last store.Time
	for _, e := range t.Events {
		m := moment{TimelineEvent: e, After: elapsed(last, e.Time)}
		m.Day = last == 0 || last.Time().Local().YearDay() != e.Time.Time().Local().YearDay()
		m.tell()
		if m.Day {
			m.After = ""
		}
		s.Events, last = append(s.Events, m), e.Time
	}
	return s
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
