package claude

import (
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus/courier"
	"netsky/home"
)

// facts is what the hooks of one start have reported.
type facts struct {
	transcript string
	began      int64        // of the session, 0 if it has not
	prompted   int64        // the last prompt
	prompt     string       // how it begins
	turn       string       // its number
	ended      int64        // the last end of a turn
	tools      []since      // running
	wants      since        // the last question for a permission
	failed     failure      // of the last turn, if it failed of a fault
	background []agent.Work // after the last turn
}

// since is what a tool does, and since when.
type since struct {
	ms   int64
	id   string // of the call
	tool string
	text string
	call string // tells its arguments from others
}

func (t since) String() string { return strings.TrimSuffix(t.tool+": "+t.text, ": ") }

// A failure is a turn that failed of a fault of the vendor's.
type failure struct {
	ms    int64
	fault agent.Fault
}

// known reads what the hooks have reported since the last call.
func (s *Session) known() facts {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tail == nil {
		s.tail = home.Events(s.Home).Tail(s.Agent)
	}
	_ = s.tail.Read(func(e agent.Event) { // unreadable events stay unknown
		if e.Start == s.Start {
			s.facts.take(e)
		}
	})
	f := s.facts
	f.tools = slices.Clone(f.tools)
	return f
}

// take applies an event.
func (f *facts) take(e agent.Event) {
	if e.Transcript != "" {
		f.transcript = e.Transcript
	}
	switch e.Event {
	case agent.EventSessionStart:
		f.began, f.tools = e.MS, nil
		if e.Text != courier.Compacted {
			f.background = nil
		}
		f.failed = failure{} // resumed, cleared or compacted: it may work now
	case agent.EventSessionEnd:
		f.tools = nil
	case agent.EventPrompt:
		f.prompted, f.prompt, f.turn, f.tools, f.wants = e.MS, e.Text, e.ID, nil, since{}
	case agent.EventTool:
		f.tools = append(f.tools, since{e.MS, e.ID, e.Tool, e.Text, e.Input})
	case agent.EventToolDone:
		f.done(e)
	case agent.EventPermission:
		f.wants = since{e.MS, e.ID, e.Tool, e.Text, e.Input}
	case agent.EventPermitted:
		if f.wants.id == e.ID {
			f.wants = since{}
		}
	case agent.EventStop:
		f.ended, f.tools, f.wants, f.failed, f.background = e.MS, nil, since{}, failure{}, e.Background
	case agent.EventStopFailed:
		f.ended, f.tools, f.wants, f.failed, f.background = e.MS, nil, since{}, failure{}, e.Background
		if e.Fault != nil {
			f.failed = failure{e.MS, *e.Fault}
		}
	}
}

// done removes a tool from those that run.
func (f *facts) done(e agent.Event) {
	i := slices.IndexFunc(f.tools, func(t since) bool { return t.id == e.ID && t.tool == e.Tool })
	if i >= 0 {
		f.tools = slices.Delete(f.tools, i, i+1)
	}
	if f.wants.tool == e.Tool && f.wants.text == e.Text && f.wants.call == e.Input {
		f.wants = since{}
	}
}

// reported is how long Claude Code may take to begin the turn with the result of what ran in
// the background, according to its registry, once that has ended.
const reported = 10 * time.Second

// works returns what the session still works on by itself. A command counts for a while
// only, as it may be meant to run for good; all of them have ended if the registry shows
// none.
func (f facts) works(r Registered, now time.Time) []agent.Work {
	commands := !slices.ContainsFunc(f.background, func(w agent.Work) bool { return w.Kind != agent.Command })
	since := now.Sub(time.UnixMilli(f.ended))
	if commands && (since >= courier.Serves || r.Status == statusIdle && since >= reported && now.Sub(time.UnixMilli(r.StatusMS)) >= reported) {
		return nil
	}
	return f.background
}

// contextHolds is how long a full context keeps messages back, unless the conversation is
// compacted or cleared before that. One that is tried then costs nothing, while one held
// back for good would wait for a turn that nobody begins.
const contextHolds = 10 * time.Minute

// full reports whether the conversation is too long for the model.
func (f failure) full(now time.Time) bool {
	return f.fault.Reason == agent.ContextFull && now.Sub(time.UnixMilli(f.ms)) < contextHolds
}
