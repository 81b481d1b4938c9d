package courier_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
)

// A steered program takes what comes during a turn into that turn.
type steered struct{ *program }

func (s steered) Offer(ctx context.Context, o courier.Offer) error {
	s.mu.Lock()
	number := fmt.Sprintf("turn-%d", s.turns)
	running := s.breakOff != nil && s.fresh > 0
	s.mu.Unlock()
	if running {
		go s.submit(o.Text, number)
		return nil
	}
	return s.program.Offer(ctx, o)
}

// TestSameID: two senders that both count their messages from 1 each get one answer, and
// their own, whatever happens to the other's message.
func TestSameID(t *testing.T) {
	first := envelope.Envelope{ID: "task-0", From: agent.Owner, To: me, Text: "of the owner"}
	second := envelope.Envelope{ID: "task-0", From: agent.Infinity, To: me, Text: "of infinity", RequiresAck: true}
	echo := func(text string) (time.Duration, string, error) { return scaled(3 * time.Second), text, nil }
	settled := func(p *post) {
		p.Helper()
		testworld.Wait(p, "both filed", func() bool { return p.count(me, bus.Delivered) == 2 })
		testworld.Wait(p, "nothing owed", func() bool { return p.owed() == "" })
		for _, e := range []envelope.Envelope{first, second} {
			if list := p.answers(e.From, e.ID); len(list) != 1 || !strings.Contains(list[0].Text, e.Text) {
				p.Errorf("%s has %d answers: %+v", e.From, len(list), list)
			}
		}
	}
	t.Run("in one turn", func(t *testing.T) {
		p := mustPost(t)
		p.program.turn = echo
		p.options.Runtime = steered{p.program}
		p.program.mustStart(t)
		p.run()
		p.drop(first)
		testworld.Wait(p, "taken", func() bool { return len(p.program.effects()) == 1 })
		p.drop(second)
		settled(p)
	})
	t.Run("the second is dropped on the way", func(t *testing.T) {
		p := mustPost(t)
		p.program.turn = echo
		p.program.mustStart(t)
		p.run()
		p.drop(first)
		testworld.Wait(p, "answered", func() bool { return len(p.answers(agent.Owner, first.ID)) == 1 && p.owed() == "" })
		p.program.set(func() { p.program.drop = 1 })
		p.drop(second)
		settled(p)
	})
	t.Run("the second was offered by a server that died", func(t *testing.T) {
		p := mustPost(t)
		p.program.turn = echo
		p.program.mustStart(t)
		stop := p.run()
		p.drop(first)
		testworld.Wait(p, "answered", func() bool { return len(p.answers(agent.Owner, first.ID)) == 1 && p.owed() == "" })
		p.program.set(func() { p.program.drop = 1 << 20 })
		p.drop(second)
		testworld.Wait(p, "offered", func() bool { return p.owed() == second.ID })
		stop()
		p.program.set(func() { p.program.drop = 0 })
		p.run()
		settled(p)
	})
}
