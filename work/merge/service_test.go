package merge_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/work/merge"
)

// A conflict is known for as long as it is there, whether or not the service was killed meanwhile.
func TestService(t *testing.T) {
	t.Parallel()
	f := newField(t)
	one, two := f.agent("agent1"), f.agent("agent2")
	start := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		s := merge.NewService(merge.Options{Home: f.home, Log: slog.New(slog.DiscardHandler), Tick: time.Millisecond, Slow: time.Hour, Share: 0.01})
		go func() { ended <- s.Run(ctx) }()
		return func() {
			cancel()
			testworld.ErrorIs(t, <-ended, context.Canceled)
		}
	}
	turn := int64(0)
	turns := func() {
		turn++
		for _, st := range []agent.State{agent.Busy, agent.Idle} {
			testworld.Must(t, f.home.SaveReport("agent1", agent.Report{State: st, SinceMS: turn}))
		}
	}
	known := func() string {
		list := testworld.Got(merge.Load(f.home))(t)
		var lines []string
		for _, k := range list {
			lines = append(lines, fmt.Sprint(k.Agents, k.Target, k.Files))
			if k.Since == 0 {
				t.Error("since is missing")
			}
		}
		return strings.Join(lines, ", ")
	}
	wait := func(want string) {
		t.Helper()
		testworld.Wait(t, "a forecast", func() bool { return known() == want })
	}
	stop := start()
	one.Commit("one", "a.txt", "by one\n")
	two.Write("a.txt", "by two\n")
	turns()
	wait("[agent1 agent2][a.txt]")

	one.Commit("more", "b.txt", "1")
	two.Write("b.txt", "2")
	turns()
	wait("[agent1 agent2][a.txt b.txt]")

	two.Write("b.txt", "1")
	turns()
	wait("[agent1 agent2][a.txt]")
	stop()

	testworld.Must(t, f.home.Remove(merge.File))
	two.Write("c.txt", "2\n")
	f.Commit("the owner's", "c.txt", "c")
	stop = start()
	wait("[agent1 agent2][a.txt], [agent2]main[c.txt]")
	two.Git("checkout", "-q", "a.txt")
	two.Write("c.txt", "c")
	turns()
	wait("")
	stop()
}
