package bus_test

import (
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/home"
)

// TestWitnessOfAnother: that the runtime was seen with a message says nothing about a later
// one of another sender with the same ID, which a dead receiver had claimed.
func TestWitnessOfAnother(t *testing.T) {
	b, h := mustBus(t, bus.Options{}, agent.Root, a1)
	before := agent.Event{MS: time.Now().Add(-time.Second).UnixMilli(), Event: agent.EventSeen, ID: "1"}
	mustDo(t, home.Events(h).Append(a1, before))
	e := message(agent.Infinity, a1, "of another")
	e.ID = "1"
	mustSend(t, b, e)
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	mustNext(t, r)
	mustDo(t, r.Close())
	r = mustReceive(t, b, a1, bus.ReceiveOptions{})
	mustCount(t, b, a1, bus.Delivered, 0)
	d := mustNext(t, r) // and once it was seen it is not
	mustDo(t, b.Witness(a1, d.Envelope().ID))
	mustDo(t, r.Close())
	mustReceive(t, b, a1, bus.ReceiveOptions{})
	mustCount(t, b, a1, bus.Delivered, 1)
}
