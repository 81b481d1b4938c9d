package claude

import (
	"slices"
	"strings"
	"time"

	"netsky/agent"
)

// facts is what the hooks of one start have reported.
type facts struct {
	transcript string
	began      int64   // of the session, 0 if it has not
	prompted   int64   // the last prompt
	prompt     string  // how it begins
	turn       string  // its number
	ended      int64   // the last end of a turn
	tools      []since // running
	wants      since   // the last question for a permission
	failed     failure // of the last turn, if it failed of a fault
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
		s.tail = s.Home.Events(s.Agent)
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
		f.ended, f.tools, f.wants, f.failed = e.MS, nil, since{}, failure{}
	case agent.EventStopFailed:
		f.ended, f.tools, f.wants, f.failed = e.MS, nil, since{}, failure{}
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

// contextHolds is how long a full context keeps messages back, unless the conversation is
// compacted or cleared before that. One that is tried then costs nothing, while one held
// back for good would wait for a turn that nobody begins.
const contextHolds = 10 * time.Minute

// full reports whether the conversation is too long for the model.
func (f failure) full(now time.Time) bool {
	return f.fault.Reason == agent.ContextFull && now.Sub(time.UnixMilli(f.ms)) < contextHolds
}
