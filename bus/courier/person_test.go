package courier_test

import (
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/testworld"
)

// A single program queues nothing.
type single struct{ *program }

func (s single) Traits() courier.Traits {
	t := s.program.Traits()
	t.Queues = false
	return t
}

// TestPersonFirst: a program is killed in the middle of a turn and started again, and a
// person types into it before anything else happens. What the turn took is neither
// answered with the person's turn nor given up with it.
func TestPersonFirst(t *testing.T) {
	for _, tt := range []struct {
		name   string
		end    *agent.Event // of the first turn, by the conversation
		single bool         // the program queues nothing, and may outlive its courier
		gone   bool         // the conversation does not hold the message
		want   string
	}{
		{name: "cut off", want: "now"},
		{name: "cut off without a queue", single: true, want: "now"},
		{name: "not in the conversation", single: true, gone: true, want: "now"},
		{name: "ended, of which no hook told", end: &agent.Event{Event: agent.EventStop, Text: "before"}, want: "before"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := mustPost(t)
			p.program.turn = func(string) (time.Duration, string, error) { return time.Hour, "", nil }
			p.program.mustStart(t)
			stop := p.run()
			p.drop(envelope.Envelope{ID: "q-0", From: agent.Owner, To: me, Text: "?"})
			testworld.Wait(p, "taken", func() bool { return p.owed() == "q-0" && p.count(me, bus.Delivered) == 1 })
			stop()

			next := newProgram(p.bus, p.home, me)
			next.start = "fedcba9876543210"
			next.held, next.took = map[string]bool{"q-0": true}, map[string]string{"q-0": "turn-1"}
			next.ends["turn-1"] = agent.Event{Event: agent.EventStopFailed, Error: "interrupted"}
			if tt.end != nil {
				next.ends["turn-1"] = *tt.end
			}
			if tt.gone {
				next.held, next.took = make(map[string]bool), make(map[string]string)
				if err := p.home.Remove(home.EventsDir + "/agent1.jsonl"); err != nil { // nor does any hook know of it
					t.Fatal(err)
				}
			}
			next.turns = 1
			next.turn = func(string) (time.Duration, string, error) { return 0, "now", nil }
			p.program, p.options.Runtime, p.options.Start = next, next, next.start
			if tt.single {
				p.options.Runtime = single{next}
			}
			next.mustStart(t)
			next.set(func() { next.state = agent.Busy })
			next.mustNote(t, agent.Event{Event: agent.EventPrompt, ID: "typed", Text: "a person's"})
			p.run()
			testworld.Wait(p, "its state reported", func() bool {
				r, err := p.home.LoadReport(me)
				return err == nil && r.Start == next.start && r.State == agent.Busy
			})
			p.man.Look(t.Context())
			next.mustNote(t, agent.Event{Event: agent.EventStop, ID: "typed", Text: "to the person"})
			next.set(func() { next.state = agent.Idle })
			testworld.Wait(p, "an answer", func() bool { return len(p.answers(agent.Owner, "q-0")) > 0 })
			testworld.Wait(p, "nothing owed", func() bool { return p.owed() == "" })
			if list := p.answers(agent.Owner, "q-0"); len(list) != 1 || !strings.Contains(list[0].Text, tt.want) {
				t.Errorf("answers: %+v, want %q", list, tt.want)
			}
		})
	}
}
