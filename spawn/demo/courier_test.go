package demo_test

import (
	"context"
	"testing"

	"netsky/internal/testworld"
	"netsky/spawn/demo"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "agent1")
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	runtime, events, err := demo.Bare(ctx, demo.Options{Home: w.home, Agent: "agent1", Start: "s", Bus: w.bus, Out: newScreen()})
	testworld.Must(t, err)
	testworld.Run(t, testworld.Rig{
		Agent: "agent1", Runtime: runtime, Events: events,
		Say:  func(words string) string { return words },
		Hold: func() string { return "/busy 1h" },
	})
}
