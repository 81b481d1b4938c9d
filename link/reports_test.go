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
