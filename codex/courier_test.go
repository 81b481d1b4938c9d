//go:build live

package codex_test

import (
	"strings"
	"testing"

	"netsky/agent"
	"netsky/bus/courier"
	"netsky/codex"
	"netsky/internal/testworld"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.holding("hold on")
	program, events, stop, err := codex.StartResident(w.ctx, w.serving())
	testworld.Must(t, err)
	defer stop()
	testworld.Run(t, testworld.Rig{
		Agent: "agent1", Runtime: program, Events: events, Remembers: true,
		Say:  func(words string) string { return "loop: say " + words },
		Hold: func() string { return "hold on" },
	})
}

// What Codex refuses is told as a turn that failed: it is answered, and not
// offered for ever.
func TestOfferRefused(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	program, events, stop, err := codex.StartResident(w.ctx, w.serving())
	testworld.Must(t, err)
	defer stop()
	w.until("it takes mail", func() bool { return program.State(w.ctx).Takes })
	testworld.Equal(t, program.Offer(w.ctx, courier.Offer{Text: strings.Repeat("x", codex.MaxText+1), About: []string{"m-1"}}), nil, "Offer")
	var told []string
	w.until("the end of the turn", func() bool {
		events.Read(func(e courier.Event) {
			if e.Event.Event == agent.EventPrompt && len(e.IDs) == 1 && e.IDs[0] == "m-1" || e.Event.Event == agent.EventStopFailed {
				told = append(told, string(e.Event.Event)+" "+e.Text)
			}
		})
		return len(told) == 2
	})
	if !strings.HasPrefix(told[0], "prompt") || !strings.Contains(told[1], "1048576") {
		t.Errorf("told %q", told)
	}
	if s := program.State(w.ctx); !s.Takes || !strings.HasPrefix(s.Detail, "last turn failed: ") || w.inputs("m-1") != "cancelled" {
		t.Errorf("state %+v, inputs %q", s, w.inputs("m-1"))
	}
}
