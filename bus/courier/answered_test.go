//go:build live

package courier_test

import (
	"context"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
)

// TestAnsweredByHand: what the model has answered by itself gets no second answer, whoever
// else answers the same id, and whatever the clocks say.
func TestAnsweredByHand(t *testing.T) {
	for _, tt := range []struct {
		name  string
		sent  time.Duration // the question's time, from now
		other bool          // another agent that got the same id has answered since
		lasts time.Duration // the turn
	}{
		{name: "by a clock ahead of ours", sent: time.Hour},
		{name: "by a clock that was set back for a moment", sent: 1500 * time.Millisecond, lasts: 2 * time.Second},
		{name: "another answered it, too", other: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := mustPost(t)
			answer := func(from agent.ID) {
				e := envelope.Envelope{From: from, To: agent.Owner, Kind: envelope.KindReply, Text: "by hand", InReplyTo: "q-0"}
				if _, err := p.bus.Send(context.Background(), e); err != nil {
					t.Error(err)
				}
			}
			p.program.turn = func(string) (time.Duration, string, error) {
				answer(me)
				if tt.other {
					answer(agent.Clone(2))
				}
				return tt.lasts, "told him", nil
			}
			p.program.mustStart(t)
			p.run()
			p.drop(envelope.Envelope{ID: "q-0", From: agent.Owner, To: me, Text: "?", Time: time.Now().Add(tt.sent)})
			testworld.Wait(p, "the turn on record", func() bool { return len(p.records.all()) == 1 })
			testworld.Wait(p, "nothing owed", func() bool { return p.owed() == "" })
			if list := p.answers(agent.Owner, "q-0"); len(list) != 1 || list[0].Text != "by hand" {
				t.Errorf("answers: %+v", list)
			}
		})
	}
}
