package link_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/daemon/observe"
	"netsky/internal/testworld"
	"netsky/store"
)

// records mirrors the host's mailboxes as its daemon would, until end is called.
func (h *host) records() (db *store.DB, end func()) {
	h.Helper()
	db = testworld.Got(store.Open(h.Context(), h.home))(h)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = (&observe.Observer{Bus: h.bus, DB: db}).Run(ctx)
	}()
	end = func() { cancel(); <-done; db.Close() }
	return db, end
}

// What becomes of a message on another host is on record here, whatever becomes of it.
func TestFates(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1")
	laptop, build1 := w.hosts[0], w.hosts[1]
	db, end := laptop.records()
	defer end()
	_, endThere := build1.records()
	defer func() { endThere() }()
	was := func(id string, to agent.ID) string {
		d, err := db.Delivery(t.Context(), id, agent.Owner, to)
		if err != nil {
			return ""
		}
		return fmt.Sprint(d.Filed, " ", d.Reason)
	}
	becomes := func(id string, to agent.ID, want string) {
		t.Helper()
		testworld.WaitOr(t, func() bool { return was(id, to) == want }, func() string { return fmt.Sprintf("%s is %q, want %q", id, was(id, to), want) })
	}
	take := func(id string, do func(*bus.Delivery) error) {
		t.Helper()
		r := testworld.Got(build1.bus.Receive(t.Context(), "agent1", bus.ReceiveOptions{}))(t)
		defer r.Close()
		d := testworld.Got(r.Next(t.Context()))(t)
		testworld.Equal(t, d.Envelope().ID, id, "the next")
		testworld.Must(t, do(d))
	}
	to := agent.ID("agent1@build1")
	build1.stop()
	id := laptop.send(agent.Owner, to, "hi")
	becomes(id, to, "sent ")
	build1.link()
	becomes(id, to, "arrived ")
	take(id, func(d *bus.Delivery) error {
		becomes(id, to, "claimed ")
		endThere() // and what happens meanwhile is told later
		return d.Confirm()
	})
	quiet, err := laptop.bus.Send(t.Context(), envelope.Envelope{From: agent.Owner, To: to, Text: "never mind", Kind: envelope.KindError, InReplyTo: id, Time: time.Now()})
	testworld.Must(t, err)
	build1.stop()
	build1.link()
	_, endThere = build1.records()
	becomes(id, to, "delivered ")
	becomes(quiet.ID, to, "arrived ") // nobody answers it
	take(quiet.ID, (*bus.Delivery).Confirm)
	becomes(quiet.ID, to, "delivered ")

	late := laptop.send(agent.Owner, to, "too late")
	becomes(late, to, "arrived ")
	take(late, func(d *bus.Delivery) error { return d.Poison("too long for agent1") })
	becomes(late, to, "poisoned too long for agent1")
	back := laptop.send(agent.Owner, to, "taken back there")
	becomes(back, to, "arrived ")
	testworld.Got(build1.bus.Retract(t.Context(), "agent1", func(envelope.Envelope) bool { return true }))(t)
	becomes(back, to, "cancelled filed unread: taken back before it was claimed")
	nobody := laptop.send(agent.Owner, "agent9@build1", "is anybody there?")
	becomes(nobody, "agent9@build1", "failed not delivered: agent9: no mailbox")
	testworld.Len(t, build1.texts("agent1"), 0, "what waits there")
	r, err := db.Messages(t.Context(), store.MessageFilter{Kind: string(envelope.KindAck)})
	testworld.Must(t, err)
	testworld.Len(t, r.Items, 0, "acknowledgements on record")
}

// What holds between agents of one host holds between those of two, and under the other's address.
func TestRulesAcross(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "laptop", "build1", "build2")
	laptop, build1, build2 := w.hosts[0], w.hosts[1], w.hosts[2]
	put := func(h *host, e envelope.Envelope) (string, error) {
		t.Helper()
		e.Time = time.Now()
		r, err := h.bus.Send(t.Context(), e)
		return r.ID, err
	}
	take := func(h *host, id agent.ID) envelope.Envelope {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r := testworld.Got(h.bus.Receive(ctx, id, bus.ReceiveOptions{}))(t)
		defer r.Close()
		d := testworld.Got(r.Next(ctx))(t)
		testworld.Must(t, d.Confirm())
		return d.Envelope()
	}
	for _, rule := range []struct {
		name string
		test func(t *testing.T)
	}{
		{"an expired message is filed unread, once, and its sender is told", func(t *testing.T) {
			id := testworld.Got(put(laptop, envelope.Envelope{From: agent.Root, To: "agent1@build1", Text: "soon", Expires: time.Now().Add(2 * time.Second)}))(t)
			r := testworld.Got(build1.bus.Receive(t.Context(), "agent1", bus.ReceiveOptions{}))(t) // takes none, and files what expires
			defer r.Close()
			e := take(laptop, agent.Root)
			testworld.Equal(t, fmt.Sprint(e.From, " ", e.Kind, " ", e.InReplyTo), "agent1@build1 error "+id)
			testworld.Contains(t, e.Text, "it expired at")
		}},
		{"two senders' messages with one id get an answer each, under an id of its own", func(t *testing.T) {
			q := envelope.Envelope{ID: "q-1", From: agent.Root, To: "agent1@build1", Text: "?", RequiresAck: true}
			for _, h := range []*host{laptop, build2} {
				testworld.Got(put(h, q))(t)
				got := take(build1, "agent1")
				testworld.Equal(t, got.From, agent.Root.At(h.name))
				testworld.Got(put(build1, envelope.Envelope{From: "agent1", To: got.From, Kind: envelope.KindReply, InReplyTo: got.ID, Text: "for " + h.name}))(t)
			}
			for _, h := range []*host{laptop, build2} {
				testworld.Equal(t, take(h, agent.Root).Text, "for "+h.name)
				e, found, err := h.bus.FindAnswer(t.Context(), "agent1@build1", agent.Root, "q-1", time.Time{})
				testworld.Must(t, err)
				testworld.Equal(t, found && e.Envelope.Text == "for "+h.name, true, "the answer is found")
			}
		}},
		{"hops are counted on, and who waits for an answer that has too many is told", func(t *testing.T) {
			testworld.Got(put(laptop, envelope.Envelope{From: agent.Root, To: "agent1@build1", Text: "1", Hops: 15}))(t)
			q := take(build1, "agent1")
			testworld.Got(put(build1, envelope.Envelope{From: "agent1", To: "agent0@laptop", Text: "2", InReplyTo: q.ID, RequiresAck: true}))(t)
			q = take(laptop, agent.Root)
			testworld.Equal(t, q.Hops, 16, "hops")
			_, err := put(laptop, envelope.Envelope{From: agent.Root, To: q.From, Kind: envelope.KindReply, InReplyTo: q.ID, Text: "3"})
			testworld.ErrorIs(t, err, bus.ErrHops)
			e := take(build1, "agent1")
			testworld.Equal(t, fmt.Sprint(e.From, " ", e.Kind, " ", e.InReplyTo), "agent0@laptop error "+q.ID)
		}},
		{"one that is too long is poisoned, its sender is told, and it arrives once it is mended", func(t *testing.T) {
			id := laptop.send(agent.Root, "agent1@build1", "too long")
			r := testworld.Got(build1.bus.Receive(t.Context(), "agent1", bus.ReceiveOptions{}))(t)
			testworld.Must(t, testworld.Got(r.Next(t.Context()))(t).Poison("too long for agent1"))
			r.Close()
			e := take(laptop, agent.Root)
			testworld.Equal(t, fmt.Sprint(e.From, " ", e.Kind, " ", e.InReplyTo), "agent1@build1 error "+id)
			name := testworld.Got(build1.bus.Names("agent1", bus.Poison))(t)[0]
			testworld.Got(build1.bus.PoisonRetry("agent1", name))(t)
			testworld.Equal(t, take(build1, "agent1").ID, id)
		}},
		{"a brake stops an agent that writes too much, and nobody else", func(t *testing.T) {
			n := 0
			var err error
			for ; n < 70 && err == nil; n++ {
				_, err = put(build2, envelope.Envelope{From: "agent1", To: "agent1@build1", Text: "again"})
			}
			testworld.ErrorIs(t, err, bus.ErrBrake)
			testworld.Got(put(build2, envelope.Envelope{From: agent.Root, To: "agent1@build1", Text: "still"}))(t)
			testworld.Wait(t, "what was let through, and another's", func() bool { return len(build1.texts("agent1")) == n })
		}},
	} {
		t.Run(rule.name, rule.test)
	}
}
