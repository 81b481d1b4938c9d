package demo_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"netsky/bus/envelope"
	"netsky/internal/testworld"
	"netsky/spawn/demo"
)

func TestTypedLines(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "agent1", "agent2")
	p := w.play("agent1")
	two := w.play("agent2")
	p.typeIn("hello\n\n  \n")
	p.shows("here\n    agent1 (demo) received: hello\n")
	p.typeIn("/no")
	p.typeIn("thing\r\n/busy 1ms\n")
	p.shows("here\n    /nothing: unknown command")
	p.shows("was busy for 1ms")
	p.typeIn("/delegate 2 go\n")
	p.shows("here\n    agent2 answers: agent2 (demo) received: go\n")
	p.typeIn("/delegate 7 go\n")
	p.shows("here\n    not sent to agent7: ")
	p.typeIn("/pingpong 2\n")
	p.shows("here\n    ping-pong with agent2 ended after 16 messages: ")
	two.shows("/pong 15")
	p.typeIn("/dialog\ny\n")
	p.shows("was answered in the pane of agent1: yes")
	p.typeIn(strings.Repeat("x", 40<<10) + "\n")
	p.shows("xxxxxxxx")
	p.typeIn("/crash 4\n")
	var crash demo.Crash
	if err := p.end(); !errors.As(err, &crash) || crash.Status != 4 {
		t.Errorf("Run = %v, want a Crash with status 4", err)
	}
}

// TestNobodyTypes runs with keys that are at their end from the start.
func TestNobodyTypes(t *testing.T) {
	t.Parallel()
	null := testworld.Got(os.Open(os.DevNull))(t)
	defer null.Close()
	for _, o := range []demo.Options{{}, {In: null}, {In: strings.NewReader("last words")}} {
		w := mustWorld(t, "agent1")
		ctx, stop := context.WithCancel(w.ctx)
		pane := newScreen()
		done := make(chan error)
		o.Home, o.Agent, o.Start, o.Bus, o.Out = w.home, "agent1", "s", w.bus, pane
		go func() { done <- demo.Run(ctx, o) }()
		w.answered(w.tell("agent1", "hello"), envelope.KindReply, "received: hello")
		if _, ok := o.In.(*strings.Reader); ok {
			(&player{world: w, id: "agent1", pane: pane}).shows("received: last words")
		}
		stop()
		testworld.ErrorIs(t, <-done, context.Canceled, "Run")
	}
}

// TestPaneIsSafe sends what would take over a terminal.
func TestPaneIsSafe(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "agent1")
	p := w.play("agent1")
	id := w.tell("agent1", "\x1b[2J\x1b]0;owned\x07\rfake\u202e\u009b1m "+strings.Repeat("long ", 2000))
	w.answered(id, envelope.KindReply, "fake")
	w.answered(w.tell("agent1", "last"), envelope.KindReply, "last")
	for _, r := range p.pane.String() {
		if r < ' ' && r != '\n' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\u202e' {
			t.Errorf("the pane holds %q", r)
		}
	}
	for line := range strings.SplitSeq(p.pane.String(), "\n") {
		if len([]rune(line)) > 80 {
			t.Errorf("a line of %d characters: %q", len([]rune(line)), line)
		}
	}
	if n := strings.Count(p.pane.String(), "long"); n > 1200 {
		t.Errorf("a long text fills the pane: %d words of it", n)
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text string
		want []string
	}{
		{"", []string{""}},
		{"short", []string{"short"}},
		{"exactly 10", []string{"exactly 10"}},
		{"exactly 10 and more", []string{"exactly 10", "and more"}},
		{"nowhere-to-break-it", []string{"nowhere-to", "-break-it"}},
		{"ééééééééééé", []string{"éééééééééé", "é"}},
		{"a\n\nb", []string{"a", "", "b"}},
		{"          deep in", []string{"          ", "deep in"}},
		{"\tx", []string{"    x"}},
	} {
		testworld.EqualList(t, demo.Wrap(test.text, 10), test.want, "wrap(%q, 10)", test.text)
	}
}

func FuzzWrap(f *testing.F) {
	f.Add("some text\nof lines", 5)
	f.Add("          x", 3)
	f.Add("é\xff ü", 1)
	f.Fuzz(func(t *testing.T, text string, width int) {
		if width < 1 || width > 200 {
			return
		}
		var kept strings.Builder
		for _, line := range demo.Wrap(text, width) {
			if len([]rune(line)) > width {
				t.Errorf("wrap(%q, %d) has the line %q", text, width, line)
			}
			kept.WriteString(line)
		}
		bare := strings.NewReplacer(" ", "", "\t", "", "\n", "").Replace
		if got, want := bare(kept.String()), bare(text); got != want {
			t.Errorf("wrap(%q, %d) keeps %q", text, width, got)
		}
	})
}
