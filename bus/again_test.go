package bus_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/home"
	"netsky/internal/testworld"
)

// TestSendOnce: an ID that its sender chose stands for one message to a recipient.
func TestSendOnce(t *testing.T) {
	var ahead atomic.Int64 // of the clock; the receiver reads it, too
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	b, _ := mustBus(t, bus.Options{Now: now}, agent.Root, a1)
	send := func(from, text string, wantAgain bool, want error) bus.Receipt {
		t.Helper()
		e := message(agent.ID(from), a1, text)
		e.ID, e.Time = "key-1", now()
		r, again, err := b.SendOnce(t.Context(), e)
		if again != wantAgain || !errors.Is(err, want) || r.ID != "key-1" {
			t.Errorf("%s of %s: %+v, again %v, %v; want %v, %v", text, from, r, again, err, wantAgain, want)
		}
		return r
	}
	first := send("owner", "text", false, nil)
	send("owner", "text", false, nil) // as it is not certain to survive yet
	send("owner", "other text", false, bus.ErrUsed)
	send("agent0", "of another", false, nil)
	mustCount(t, b, a1, bus.Inbox, 3)
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	mustConfirm(t, mustNext(t, r))
	mustConfirm(t, mustNext(t, r))
	mustNone(t, r)
	if second := send("owner", "text", true, nil); second.File != first.File {
		t.Errorf("file %s, want that of the first, %s", second.File, first.File)
	}
	send("owner", "other text", false, bus.ErrUsed)
	mustCount(t, b, a1, bus.Inbox, 0)
	ahead.Store(int64(bus.DefaultKeep + time.Hour))
	send("owner", "other text", false, nil)
	mustCount(t, b, a1, bus.Inbox, 1)
}

// TestSendOnceExpired: a message that was filed unread was not delivered.
func TestSendOnceExpired(t *testing.T) {
	b, _ := mustBus(t, bus.Options{}, agent.Owner, a1)
	e := message(agent.Owner, a1, "late")
	e.ID, e.Expires = "key-1", time.Now().Add(-time.Second)
	mustSend(t, b, e)
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	mustNone(t, r)
	mustCount(t, b, a1, bus.Delivered, 1)
	if _, again, err := b.SendOnce(t.Context(), e); again || !errors.Is(err, bus.ErrUsed) {
		t.Errorf("again %v, %v; want ErrUsed", again, err)
	}
}

// TestWitnessOfAnother: that the runtime was seen with a message says nothing about a later
// one of another sender with the same ID, which a dead receiver had claimed.
func TestWitnessOfAnother(t *testing.T) {
	b, h := mustBus(t, bus.Options{}, agent.Root, a1)
	before := agent.Event{MS: time.Now().Add(-time.Second).UnixMilli(), Event: agent.EventSeen, ID: "1"}
	testworld.Must(t, home.Events(h).Append(a1, before))
	e := message(agent.Infinity, a1, "of another")
	e.ID = "1"
	mustSend(t, b, e)
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	mustNext(t, r)
	testworld.Must(t, r.Close())
	r = mustReceive(t, b, a1, bus.ReceiveOptions{})
	mustCount(t, b, a1, bus.Delivered, 0)
	d := mustNext(t, r) // and once it was seen it is not
	testworld.Must(t, b.Witness(a1, d.Envelope().ID))
	testworld.Must(t, r.Close())
	mustReceive(t, b, a1, bus.ReceiveOptions{})
	mustCount(t, b, a1, bus.Delivered, 1)
}
