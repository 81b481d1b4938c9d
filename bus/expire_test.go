package bus_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
	"netsky/internal/testworld"
)

// What waits is filed, and its sender told, at the time it expires, although nobody takes
// mail; and once. What has not expired and what is in hand stay.
func TestExpiresUntaken(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		text string
		held bool // by a receiver that died
	}{
		{name: "waits", text: "too late"},
		{name: "long", text: strings.Repeat("too late ", 20_000)},
		{name: "a dead holder had claimed it", text: "too late", held: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, _ := mustBus(t, bus.Options{}, agent.Root, agent.Clone(2), a1, agent.Owner)
			late := message(agent.Clone(2), a1, tt.text)
			late.ID, late.Expires = "late", time.Now().Add(time.Second)
			kept := message(agent.Root, a1, "still good")
			kept.Expires = time.Now().Add(time.Hour)
			var r *bus.Receiver
			if tt.held {
				sent := mustSend(t, b, late)
				r = mustReceive(t, b, a1, bus.ReceiveOptions{})
				if d := mustNext(t, r); d.Envelope().ID != sent.ID {
					t.Fatalf("took %+v", d.Envelope())
				}
				testworld.Must(t, r.Close())
				r = mustReceive(t, b, a1, bus.ReceiveOptions{})
			} else {
				r = mustReceive(t, b, a1, bus.ReceiveOptions{})
				first := message(agent.Root, a1, "first")
				first.Expires = late.Expires
				mustSend(t, b, first)
				d := mustNext(t, r)
				defer mustConfirm(t, d) // in hand, it does not expire
				mustSend(t, b, late)
			}
			mustSend(t, b, kept)
			testworld.Wait(t, "its sender is told", func() bool {
				e, ok, err := b.FindAnswer(t.Context(), "", agent.Clone(2), "late", time.Time{})
				if ok && (e.Envelope.Kind != envelope.KindError || time.Now().Before(late.Expires)) {
					t.Fatalf("told %+v at %v", e.Envelope, time.Now())
				}
				return ok && err == nil
			})
			if since := time.Since(late.Expires); since > 4*time.Second {
				t.Errorf("told %v after it had expired", since)
			}
			testworld.Wait(t, "it is filed", func() bool {
				list, err := b.List(a1, bus.Delivered, 0)
				return err == nil && len(list) == 1 && list[0].Reason == mailbox.Expired && list[0].Envelope.ID == "late"
			})
			mustCount(t, b, a1, bus.Inbox, 1)
			d := mustNext(t, r)
			testworld.Equal(t, d.Envelope().Text, kept.Text, "took")
			mustConfirm(t, d)
			mustCount(t, b, agent.Clone(2), bus.Inbox, 1)
		})
	}
}

// What a dead holder may have given out does not expire while it waits, and keeps its place.
func TestOfferedStays(t *testing.T) {
	t.Parallel()
	b, _ := mustBus(t, bus.Options{}, agent.Root, a1, agent.Owner)
	first, second := message(agent.Owner, a1, "first"), message(agent.Owner, a1, "second")
	second.Expires = time.Now().Add(-time.Second)
	first.ID, second.ID = "first", "second"
	second.Time = time.Now()
	offered := bus.ReceiveOptions{Offered: func(envelope.Envelope) bool { return true }}
	r := mustReceive(t, b, a1, offered)
	for _, e := range []envelope.Envelope{first, second} {
		mustSend(t, b, e)
		mustNext(t, r)
	}
	testworld.Must(t, r.Close())
	passed := make(chan struct{})
	var once sync.Once
	offered.Offered = func(envelope.Envelope) bool { once.Do(func() { close(passed) }); return true }
	r = mustReceive(t, b, a1, offered)
	<-passed // the receiver has looked at it by itself
	for _, id := range []string{"first", "second"} {
		d := mustNext(t, r)
		testworld.Equal(t, d.Envelope().ID, id, "took")
		mustConfirm(t, d)
	}
	mustCount(t, b, agent.Owner, bus.Inbox, 0)
}
