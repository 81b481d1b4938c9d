package fleet_test

import (
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/fleet"
	"netsky/internal/testworld"
)

// Whoever waits until an agent on another host has a message waits for that host's word, and not until the message has left.
func TestAwaitElsewhere(t *testing.T) {
	t.Parallel()
	s, d := newControlWith(t, nil)
	testworld.Must(t, s.bus.Link("build1"))
	there := testworld.Bus(t, testworld.FastHome(t))
	testworld.Must(t, there.Link("here"))
	m := fleet.Mail(d)
	pass := func(b *bus.Bus, box agent.ID, take func(*bus.Delivery) error) {
		t.Helper()
		r := testworld.Got(b.Receive(t.Context(), box, bus.ReceiveOptions{Carry: true}))(t)
		defer r.Close()
		m := testworld.Got(r.Next(t.Context()))(t)
		testworld.Must(t, take(m))
		testworld.Must(t, m.Confirm())
	}
	for state, want := range map[string]string{"delivered": "", "cancelled": "cancelled on build1: removed from the mailbox"} {
		sent := testworld.Got(m.Send(t.Context(), fleet.SendRequest{To: "agent1@build1", Text: "hi"}))(t)
		pass(s.bus, "agent1@build1", func(*bus.Delivery) error { return nil })
		_, err := m.Await(t.Context(), fleet.AwaitRequest{SendResult: sent, Until: "delivered", Timeout: 100 * time.Millisecond})
		testworld.Fails(t, err, "sent, but not delivered within 100ms, as it is on its way to build1")
		done := make(chan error, 1)
		go func() {
			v, err := m.Await(t.Context(), fleet.AwaitRequest{SendResult: sent, Until: "delivered"})
			if err == nil {
				testworld.Equal(t, v.Text, "delivered")
			}
			done <- err
		}()
		for _, now := range []string{"queued", "claimed", state} {
			r := bus.DeliveryReport{ID: sent.ID, From: agent.Owner, To: "agent1", State: now, Reason: "removed from the mailbox"}
			testworld.Must(t, there.Report(t.Context(), "here", r))
			pass(there, "agent0@here", func(m *bus.Delivery) error { return s.bus.Arrive(t.Context(), "build1", m.Envelope(), false) })
		}
		if err := <-done; want == "" {
			testworld.Must(t, err)
		} else {
			testworld.Fails(t, err, want)
		}
	}
}
