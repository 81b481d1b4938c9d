package claude_test

import (
	"testing"

	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/courier/couriertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	l := mustLive(t, "bypassPermissions")
	events, err := courier.Events(l.ctx, l.Home, bus.New(l.Home, bus.Options{}), "agent1")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	couriertest.Run(t, couriertest.Rig{
		Agent: "agent1", Runtime: l.Courier(), Events: events, Remembers: true,
		Say:  func(words string) string { return "loop: say " + words },
		Hold: func() string { return "loop: sleep 10m" },
	})
}
