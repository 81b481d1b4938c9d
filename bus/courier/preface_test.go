package courier_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"netsky/agent"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
)

// The first text after a conversation was compacted begins with the facts, once, the first
// after it was cleared with the startup text too; a new one has both.
func TestFacts(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.options.Startup, p.options.Fresh = "to begin with", true
	var asked atomic.Int64
	memory := &memory{facts: func(fresh bool, told []string) string {
		return fmt.Sprintf("facts %d, fresh %v, besides %q", asked.Add(1), fresh, told)
	}}
	p.options.Memory = memory
	l := &line{queue: courier.NewQueue("start"), takes: func(int) fate { return answered }, held: make(map[string]agent.Event)}
	p.runLine(l)
	for i, tt := range []struct {
		session        string // begins before
		startup, facts string
	}{
		{"", "to begin with", `facts 1, fresh true, besides ["q-0"]`},
		{"", "", ""},
		{"compact", "", `facts 2, fresh false, besides ["q-2"]`},
		{"", "", ""},
		{"resume", "", ""},
		{"clear", "to begin with", `facts 3, fresh true, besides ["q-5"]`},
		{"", "", ""},
	} {
		if tt.session != "" {
			l.queue.Put(courier.Event{Event: agent.Event{Event: agent.EventSessionStart, Session: "c", Text: tt.session}})
		}
		id := fmt.Sprintf("q-%d", i)
		p.drop(envelope.Envelope{ID: id, From: agent.Owner, To: me, Text: "?"})
		testworld.Wait(p, "the answer", func() bool { return len(p.answers(agent.Owner, id)) > 0 })
		text := l.said()[i]
		want := ""
		for _, part := range []string{tt.startup, tt.facts} {
			if part != "" {
				want += envelope.RenderNotice(part) + "\n"
			}
		}
		if !strings.HasPrefix(text, want+`<channel source="agent"`) {
			t.Errorf("%d: %q, want %q first", i, text, want)
		}
	}
}

// What is due from the start precedes the first text, and is told once.
func TestFactsBehind(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	memory := &memory{facts: func(bool, []string) string { return "all were down" }}
	memory.due.Store(true)
	p.options.Startup, p.options.Memory = "to begin with", memory
	l := &line{queue: courier.NewQueue("start"), takes: func(int) fate { return answered }, held: make(map[string]agent.Event)}
	l.queue.Put(courier.Event{Event: agent.Event{Event: agent.EventSessionStart, Session: "c", Text: "resume"}})
	p.runLine(l)
	for i, want := range []string{envelope.RenderNotice("all were down") + "\n", ""} {
		id := fmt.Sprintf("q-%d", i)
		p.drop(envelope.Envelope{ID: id, From: agent.Owner, To: me, Text: "?"})
		testworld.Wait(p, "the answer", func() bool { return len(p.answers(agent.Owner, id)) > 0 })
		if text := l.said()[i]; !strings.HasPrefix(text, want+`<channel source="agent"`) {
			t.Errorf("%q", text)
		}
	}
	if n := memory.told.Load(); n != 1 || memory.due.Load() {
		t.Errorf("told %d times, due %v", n, memory.due.Load())
	}
}

// memory counts what it is asked.
type memory struct {
	facts      func(fresh bool, told []string) string
	due        atomic.Bool
	told, lost atomic.Int64
}

func (m *memory) Due() bool { return m.due.Load() }
func (m *memory) Facts(_ context.Context, fresh bool, told []string) string {
	return m.facts(fresh, told)
}
func (m *memory) Forgot() { m.lost.Add(1); m.due.Store(true) }
func (m *memory) Told()   { m.told.Add(1); m.due.Store(false) }

// What a compacted conversation has forgotten is due in the agent's next start too, if it
// was not told in this one.
func TestFactsOutliveTheCourier(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	memory := &memory{facts: func(bool, []string) string { return "what it forgot" }}
	p.options.Memory = memory
	l := &line{queue: courier.NewQueue("start"), takes: func(int) fate { return answered }, held: make(map[string]agent.Event)}
	p.runLine(l)
	l.queue.Put(courier.Event{Event: agent.Event{Event: agent.EventSessionStart, Session: "c", Text: courier.Compacted}})
	testworld.Wait(p, "the note", memory.due.Load)
	if n := memory.lost.Load(); n != 1 || memory.told.Load() != 0 {
		t.Errorf("noted %d times, told %d times", n, memory.told.Load())
	}
}
