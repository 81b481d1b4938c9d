package bus_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
)

// TestAnswersPassTheBrake: each message that has come to an agent has one answer
// that neither the rate nor a full mailbox stops.
func TestAnswersPassTheBrake(t *testing.T) {
	t.Parallel()
	b, home := mustBus(t, bus.Options{}, agent.Root, a1, agent.Owner)
	const asked = 150
	take := func() {
		t.Helper()
		testworld.Got(b.Drain(t.Context(), a1, 0, func(envelope.Envelope) error { return nil }))(t)
	}
	for i := range asked {
		e := message(agent.Owner, a1, "?")
		e.ID = fmt.Sprint("q", i)
		mustSend(t, b, e)
	}
	take()
	answer := func(b *bus.Bus, id string) error {
		e := message(a1, agent.Owner, "!")
		e.Kind, e.InReplyTo, e.Hops = envelope.KindReply, id, 1
		_, err := b.Send(t.Context(), e)
		return err
	}
	for i := range asked {
		if err := answer(bus.New(home, bus.Options{}), fmt.Sprint("q", i)); err != nil { // a process each
			t.Fatalf("answer %d: %v", i, err)
		}
	}
	for what, id := range map[string]string{"a second answer": "q149", "an answer to nothing": "invented"} {
		testworld.ErrorIs(t, answer(b, id), bus.ErrBrake, "%s", what)
	}
	flood := message(a1, agent.Owner, "may I?")
	flood.Kind = envelope.KindApproval
	if _, err := b.Send(t.Context(), flood); !errors.Is(err, bus.ErrBrake) || errors.Is(err, bus.ErrHops) {
		t.Errorf("a message that answers none = %v, want ErrBrake", err)
	}
	if n, err := b.Count(agent.Owner, bus.Inbox); err != nil || n != asked+1 {
		t.Errorf("the owner has %d messages, %v, want the answers and one notice", n, err)
	}
	// Another's message of that ID is no excuse.
	e := message(agent.Root, a1, "?")
	e.ID = "roots"
	mustSend(t, b, e)
	take()
	testworld.ErrorIs(t, answer(b, "roots"), bus.ErrBrake, "an answer to somebody else's")
	// A full mailbox.
	for i := range 1000 {
		mustDrop(t, home, agent.Root, bus.Inbox, fmt.Sprintf("%d.json", i), handmade)
	}
	full := message(a1, agent.Root, "!")
	full.InReplyTo = "roots"
	mustSend(t, b, full)
}

// TestAnswersAreBoundedByHops: two agents that answer every word of each other,
// and pretend that each is the first, come to an end when the brake of the rate
// lets answers pass.
func TestAnswersAreBoundedByHops(t *testing.T) {
	t.Parallel()
	b, _ := mustBus(t, bus.Options{}, agent.Root, a1, agent.Owner)
	for i := range 60 {
		if i > 0 {
			mustSend(t, b, message(agent.Root, a1, fmt.Sprint(i)))
		}
		mustSend(t, b, message(a1, agent.Root, fmt.Sprint(i)))
	}
	last := mustSend(t, b, message(agent.Root, a1, "begin")).ID
	from, to := a1, agent.Root
	for n := 1; ; n++ {
		testworld.Got(b.Drain(t.Context(), from, 0, func(envelope.Envelope) error { return nil }))(t)
		e := message(from, to, "!")
		e.Kind, e.InReplyTo, e.Hops = envelope.KindReply, last, 1
		r, err := b.Send(t.Context(), e)
		if errors.Is(err, bus.ErrBrake) {
			if n != 17 || !strings.Contains(err.Error(), "17 hops") {
				t.Errorf("stopped at answer %d: %v", n, err)
			}
			return
		}
		testworld.Must(t, err)
		from, to, last = to, from, r.ID
	}
}

// TestRefusedAnswerIsTold: whoever waits for an answer that the hops stop gets an
// error in its place, once, and an answer to that error is not told again.
func TestRefusedAnswerIsTold(t *testing.T) {
	t.Parallel()
	b, _ := mustBus(t, bus.Options{}, agent.Root, a1, agent.Owner)
	for _, from := range []agent.ID{agent.Root, agent.Owner} {
		q := message(from, a1, "the last hop")
		q.ID, q.Hops, q.RequiresAck = "q-"+string(from), 16, true
		mustSend(t, b, q)
		testworld.Got(b.Drain(t.Context(), a1, 0, func(envelope.Envelope) error { return nil }))(t)
		for range 3 {
			e := message(a1, from, "!")
			e.Kind, e.InReplyTo = envelope.KindReply, q.ID
			if _, err := b.Send(t.Context(), e); !errors.Is(err, bus.ErrBrake) || !errors.Is(err, bus.ErrHops) {
				t.Fatalf("Send = %v, want ErrBrake and ErrHops", err)
			}
		}
		got, ok, err := b.FindAnswer(t.Context(), "", from, q.ID, time.Time{})
		if err != nil || !ok || got.Envelope.Kind != envelope.KindError || !strings.Contains(got.Envelope.Text, "17 hops") {
			t.Errorf("%s: FindAnswer = %+v, %v, %v, want the refusal", from, got.Envelope, ok, err)
		}
		want := 1
		if from == agent.Owner {
			want = 2 // and the notice of the brake for agent0, from before
		}
		list, err := b.List(from, bus.Inbox, 0)
		if err != nil || len(list) < want || len(list) > want+1 {
			t.Errorf("%s was told %d times: %v", from, len(list), err)
		}
	}
	// agent0 answers the error.
	testworld.Got(b.Drain(t.Context(), agent.Root, 0, func(envelope.Envelope) error { return nil }))(t)
	reply := message(agent.Root, a1, "!")
	reply.InReplyTo = envelope.AnswerID(a1, "q-agent0", envelope.KindError)
	testworld.ErrorIs(t, testworld.Err(b.Send(t.Context(), reply)), bus.ErrBrake, "Send")
	mustCount(t, b, a1, bus.Inbox, 0)
}

// TestOwnNoticeHasNoBrake: what netsky itself has to say about an agent passes, however much
// that agent has sent.
func TestOwnNoticeHasNoBrake(t *testing.T) {
	t.Parallel()
	b, _ := mustBus(t, bus.Options{}, a1, agent.Owner)
	e := message(a1, agent.Owner, "crash loop")
	e.Kind = envelope.KindNotice
	for range 60 {
		mustSend(t, b, e)
	}
	testworld.ErrorIs(t, testworld.Err(b.Send(t.Context(), e)), bus.ErrBrake, "the agent's own notice")
	e.Via = "code"
	mustSend(t, b, e)
}
