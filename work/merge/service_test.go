package merge_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/internal/testworld"
	"netsky/work/merge"
)

// Both agents are told of a conflict once for each set of files, whether or not the service was
// killed meanwhile, and the list has it for as long as it is there.
func TestService(t *testing.T) {
	t.Parallel()
	f := newField(t)
	b := bus.New(f.home, bus.Options{})
	one, two := f.agent("agent1"), f.agent("agent2")
	for _, id := range []agent.ID{"agent1", "agent2"} {
		if err := b.Make(id); err != nil {
			t.Fatal(err)
		}
	}
	start := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		s := merge.NewService(merge.Options{Home: f.home, Bus: b, Log: slog.New(slog.DiscardHandler), Tick: time.Millisecond, Slow: time.Hour, Share: 0.01})
		go func() { ended <- s.Run(ctx) }()
		return func() {
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	}
	turn := int64(0)
	turns := func() {
		turn++
		for _, st := range []agent.State{agent.Busy, agent.Idle} {
			if err := f.home.SaveReport("agent1", agent.Report{State: st, SinceMS: turn}); err != nil {
				t.Fatal(err)
			}
		}
	}
	mail := func() string {
		var list []string
		for _, id := range []agent.ID{"agent1", "agent2"} {
			entries, err := b.List(id, bus.Inbox, 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				lines := strings.Split(e.Envelope.Text, "\n")
				list = append(list, fmt.Sprint(id, " ", strings.Join(lines[1:len(lines)-1], " ")))
			}
		}
		return strings.Join(list, ", ")
	}
	known := func() string {
		list, err := merge.Load(f.home)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, k := range list {
			lines = append(lines, fmt.Sprint(k.Agents, k.Target, k.Files))
			if k.Since == 0 {
				t.Error("since is missing")
			}
			if !k.Told {
				t.Error("its agents were sent a message, and it is not known")
			}
		}
		return strings.Join(lines, ", ")
	}
	wait := func(wantKnown, wantMail string) {
		t.Helper()
		testworld.Wait(t, "a forecast", func() bool { return known() == wantKnown })
		if got := mail(); got != wantMail {
			t.Errorf("told %q, want %q", got, wantMail)
		}
	}
	stop := start()
	one.Commit("one", "a.txt", "by one\n")
	two.Write("a.txt", "by two\n")
	turns()
	wait("[agent1 agent2][a.txt]", "agent1 - a.txt, agent2 - a.txt")

	one.Commit("more", "b.txt", "1")
	two.Write("b.txt", "2")
	turns()
	all := "agent1 - a.txt, agent1 - a.txt - b.txt, agent2 - a.txt, agent2 - a.txt - b.txt"
	wait("[agent1 agent2][a.txt b.txt]", all)

	two.Write("b.txt", "1")
	turns()
	wait("[agent1 agent2][a.txt]", all)
	stop()

	// What it has told is forgotten in a crash; telling it again has no effect.
	if err := f.home.Remove(merge.File); err != nil {
		t.Fatal(err)
	}
	two.Write("c.txt", "2\n")
	f.Commit("the owner's", "c.txt", "c")
	stop = start()
	testworld.Wait(t, "a forecast", func() bool { return known() == "[agent1 agent2][a.txt], [agent2]main[c.txt]" })
	if got := mail(); strings.Count(got, "agent2 - c.txt") != 1 {
		t.Error(got)
	}
	two.Git("checkout", "-q", "a.txt")
	two.Write("c.txt", "c")
	turns()
	testworld.Wait(t, "no conflict", func() bool { return known() == "" })
	stop()
}
