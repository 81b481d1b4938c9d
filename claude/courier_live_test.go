//go:build live

package claude_test

import (
	"slices"
	"strings"
	"testing"

	"netsky/bus"
	"netsky/bus/courier"
	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/testworld"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	l := mustLive(t, "bypassPermissions")
	events := testworld.Got(courier.Events(l.ctx, l.Home, bus.New(l.Home, bus.Options{}), "agent1"))(t)
	defer events.Close()
	const hold = "loop: sleep 10m"
	testworld.Run(t, testworld.Rig{
		Agent: "agent1", Runtime: l.Courier(), Events: events, Remembers: true,
		Say:  func(words string) string { return "loop: say " + words },
		Hold: func() string { return hold },
		Holding: func() bool {
			return slices.ContainsFunc(l.model.Requests(), func(q anthropic.Request) bool { return strings.Contains(q.Last(), hold) })
		},
	})
}
