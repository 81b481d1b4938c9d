//go:build live

package courier_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
)

// TestHeldCancelled: the sender or the owner can cancel what is held, and nobody else.
func TestHeldCancelled(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	turns := p.program.fails(1000, func() error { return usage(time.Hour) })
	p.program.mustStart(t)
	p.run()
	p.drop(envelope.Envelope{ID: "agent0-0", From: agent.Root, To: me, Text: "?", Kind: envelope.KindBrief})
	p.mustHold("agent0-0")
	testworld.Wait(p, "its sender is told", func() bool { return len(p.answers(agent.Root, "agent0-0")) == 1 })
	if told := p.answers(agent.Root, "agent0-0")[0]; told.Kind != envelope.KindHeld || !strings.Contains(told.Text, "usage limit until ") {
		t.Errorf("told: %+v", told)
	}
	if _, found, err := p.bus.FindAnswer(t.Context(), "", agent.Root, "agent0-0", time.Time{}); found || err != nil {
		t.Errorf("being held passes for an answer: %v, %v", found, err)
	}
	p.drop(envelope.Envelope{ID: "c-1", From: agent.Clone(2), To: me, Kind: envelope.KindCancel, InReplyTo: "agent0-0", Text: "cancel"})
	testworld.Wait(p, "another's cancel is ignored", func() bool { return strings.Contains(p.log.String(), "cancel from agent2") })
	p.mustHold("agent0-0")
	p.drop(envelope.Envelope{ID: "c-2", From: agent.Root, To: me, Kind: envelope.KindCancel, InReplyTo: "agent0-0", Text: "cancel"})
	testworld.Wait(p, "an error", func() bool { return len(p.answers(agent.Root, "agent0-0")) == 2 })
	testworld.Wait(p, "nothing owed", func() bool { return p.owed() == "" })
	last := p.answers(agent.Root, "agent0-0")[1]
	if last.Kind != envelope.KindError || !last.Cancelled() || !strings.HasPrefix(last.Text, "cancelled by agent0 while it was held") {
		t.Errorf("answer: %+v", last)
	}
	p.retry()
	p.man.Look(t.Context())
	if n := turns.Load(); n != 1 {
		t.Errorf("%d turns", n)
	}
}

// TestHeldExpires: a message that expires while it is held, or while it waits behind one, is
// not given to the model any more, and its sender is told.
func TestHeldExpires(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	turns := new(atomic.Int32)
	p.program.turn = func(string) (time.Duration, string, error) {
		if turns.Add(1) == 1 {
			return 500 * time.Millisecond, "", usage(time.Hour)
		}
		return 0, "42", nil
	}
	p.program.mustStart(t)
	p.run()
	end := time.Now().Add(3 * time.Second)
	p.drop(envelope.Envelope{ID: "owner-0", From: agent.Owner, To: me, Text: "held", Expires: end})
	p.mustHold("owner-0")
	p.drop(envelope.Envelope{ID: "agent0-0", From: agent.Root, To: me, Text: "behind", Expires: end})
	testworld.Wait(p, "the one behind is claimed", func() bool { return p.count(me, bus.Claimed) == 1 })
	testworld.Wait(p, "its sender is told", func() bool { return len(p.answers(agent.Root, "agent0-0")) == 1 })
	want := "not delivered to agent1: it expired at " + end.Local().Format(time.DateTime)
	if a := p.answers(agent.Root, "agent0-0")[0]; a.Kind != envelope.KindError || a.Text != want || time.Now().Before(end) {
		t.Errorf("told %q, want %q", a.Text, want)
	}
	if !p.tripped() {
		t.Error("nobody waits any more")
	}
	p.retry()
	testworld.Wait(p, "an answer", func() bool { return len(p.answers(agent.Owner, "owner-0")) == 1 })
	if a := p.answers(agent.Owner, "owner-0")[0]; a.Kind != envelope.KindError || !strings.HasPrefix(a.Text, "it was held (usage limit), and it expired meanwhile, at ") {
		t.Errorf("answer: %+v", a)
	}
	p.drop(envelope.Envelope{ID: "owner-1", From: agent.Owner, To: me, Text: "next"})
	testworld.Wait(p, "the next is answered", func() bool { return len(p.answers(agent.Owner, "owner-1")) == 1 })
	if n := turns.Load(); n != 2 {
		t.Errorf("%d turns", n)
	}
	if p.tripped() {
		t.Error("the account is still taken for exhausted")
	}
}

// TestContextFull: a full context is this conversation's alone, and no answer: the message is
// held, its sender told, and it is given to the model again. If there is no room for it even
// after the conversation was compacted, that is the answer.
func TestContextFull(t *testing.T) {
	t.Parallel()
	full := func() error { return faultError{agent.Fault{Reason: agent.ContextFull, Text: "prompt is too long"}} }
	p := mustPost(t)
	turns := p.program.fails(2, full)
	p.program.mustStart(t)
	p.run()
	p.drop(envelope.Envelope{ID: "agent0-0", From: agent.Root, To: me, Kind: envelope.KindBrief, Text: "?"})
	if h := p.mustHold("agent0-0"); h.Fault.Reason != agent.ContextFull || h.Fault.Account != "" {
		t.Errorf("held: %+v", h)
	}
	answers := func(kind envelope.Kind) (text string) {
		for _, a := range p.answers(agent.Root, "agent0-0") {
			if a.Kind == kind {
				text += a.Text
			}
		}
		return text
	}
	testworld.Wait(p, "an answer", func() bool { return answers(envelope.KindReply) == "42" && p.owed() == "" })
	if n, words := turns.Load(), answers(envelope.KindError); n != 3 || words != "" {
		t.Errorf("%d turns, errors %q", n, words)
	}
	p.program.set(func() {
		p.program.turn = func(string) (time.Duration, string, error) {
			p.program.mustNote(t, agent.Event{Event: agent.EventSessionStart, Text: courier.Compacted})
			return 0, "", full()
		}
	})
	p.drop(envelope.Envelope{ID: "owner-0", From: agent.Owner, To: me, Text: "too long"})
	testworld.Wait(p, "an answer", func() bool { return len(p.answers(agent.Owner, "owner-0")) == 1 })
	if a := p.answers(agent.Owner, "owner-0")[0]; a.Kind != envelope.KindError || !strings.Contains(a.Text, "prompt is too long") {
		t.Errorf("answer: %+v", a)
	}
	if p.tripped() {
		t.Error("other agents are kept from working")
	}
}

// TestHeldKilled: the courier is killed at each step of holding a message and of offering
// it again: it is answered once all the same.
func TestHeldKilled(t *testing.T) {
	t.Parallel()
	for kill := 1; kill <= 14; kill++ {
		t.Run(fmt.Sprint(kill), func(t *testing.T) {
			t.Parallel()
			p := mustPost(t)
			turns := p.program.fails(1, func() error { return usage(time.Hour) })
			p.program.mustStart(t)
			socket, _ := p.mustDoor()
			p.drop(envelope.Envelope{ID: "owner-0", From: agent.Owner, To: me, Text: "?"})
			first := p.mustProcess(socket, fmt.Sprint(kill))
			died := make(chan error, 1)
			go func() { died <- first.Wait() }()
			t.Cleanup(func() { first.Process.Kill() })
			next := func() {}
			testworld.Wait(p, "nothing owed", func() bool {
				select {
				case <-died:
					next = p.mustCourier(socket)
				default:
				}
				if p.tripped() {
					p.retry()
				}
				return len(p.answers(agent.Owner, "owner-0")) > 0 && p.owed() == "" && p.count(me, bus.Delivered) == 1
			})
			next()
			if list := p.answers(agent.Owner, "owner-0"); len(list) != 1 || list[0].Kind != envelope.KindReply || list[0].Text != "42" {
				t.Errorf("answers: %+v", list)
			}
			if n := turns.Load(); n < 2 || n > 3 {
				t.Errorf("%d turns", n)
			}
		})
	}
}
