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
	p.options.Facts = func(_ context.Context, fresh bool, told []string) string {
		return fmt.Sprintf("facts %d, fresh %v, besides %q", asked.Add(1), fresh, told)
	}
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
	var told atomic.Int64
	p.options.Startup, p.options.Behind, p.options.Told = "to begin with", true, func() { told.Add(1) }
	p.options.Facts = func(context.Context, bool, []string) string { return "all were down" }
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
	if n := told.Load(); n != 1 {
		t.Errorf("told %d times", n)
	}
}
