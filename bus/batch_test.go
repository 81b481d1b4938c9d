package bus_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
)

// mustBatch takes a batch and says what stands in it, a word each.
func mustBatch(tb testing.TB, r *bus.Receiver, max, bytes int) (list []*bus.Delivery, words string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	list = testworld.Got(r.Batch(ctx, max, bytes))(tb)
	var got []string
	for _, d := range list {
		got = append(got, strings.Trim(d.Envelope().Text, "x"))
	}
	return list, strings.Join(got, " ")
}

func mustConfirmAll(tb testing.TB, list []*bus.Delivery) {
	tb.Helper()
	for _, d := range list {
		mustConfirm(tb, d)
	}
}

func TestBatch(t *testing.T) {
	t.Parallel()
	b, _ := mustBus(t, bus.Options{}, agent.Root, agent.Clone(2), a1)
	long := strings.Repeat("x", 1000)
	for _, text := range []string{"1", "2" + long, "3", "4" + strings.Repeat(long, 9), "5", "6", "7", "8"} {
		mustSend(t, b, message(agent.Root, a1, text))
	}
	mustSend(t, b, message(agent.Owner, a1, "0"))
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	var held []*bus.Delivery
	for _, tt := range []struct {
		max, bytes int
		want       string
	}{
		{9, 1500, "0 1 2"}, // 3 would be too much
		{9, 10, "3"},       // the first is handed over however long it is
		{9, 2000, "4"},
		{2, 2000, "5 6"},
		{1, 2000, "7"},
		{9, 2000, "8"},
	} {
		list, got := mustBatch(t, r, tt.max, tt.bytes)
		if got != tt.want {
			t.Fatalf("Batch(%d, %d) = %s, want %s", tt.max, tt.bytes, got, tt.want)
		}
		held = append(held, list...)
	}
	mustNone(t, r)
	mustConfirmAll(t, held)
	mustCount(t, b, a1, bus.Delivered, 9)
}

// TestBatchLeaves: what did not fit is left unclaimed, and those that are filed
// unread take no room.
func TestBatchLeaves(t *testing.T) {
	t.Parallel()
	b, _ := mustBus(t, bus.Options{}, agent.Root, agent.Clone(2), a1)
	first := message(agent.Root, a1, "first")
	first.ID = "first"
	mustSend(t, b, first)
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	list, _ := mustBatch(t, r, 9, 1000)
	mustSend(t, b, message(agent.Root, a1, "second"))
	first.Text = strings.Repeat("x", 5000)
	mustSend(t, b, first) // known, when it is looked at
	mustSend(t, b, message(agent.Root, a1, "third"))
	mustSend(t, b, message(agent.Clone(2), a1, strings.Repeat("x", 5000)+"long"))
	mustSend(t, b, message(agent.Root, a1, "last"))
	mustConfirmAll(t, list)
	testworld.Wait(t, "all of it found", func() bool {
		list, got := mustBatch(t, r, 9, 1000)
		mustConfirmAll(t, list)
		if got == "second" { // the rest was not there yet
			list, got = mustBatch(t, r, 9, 1000)
			mustConfirmAll(t, list)
		}
		return strings.HasSuffix(got, "third")
	})
	mustCount(t, b, a1, bus.Claimed, 0)
	mustCount(t, b, a1, bus.Inbox, 2)
	testworld.Must(t, r.Close())
	r = mustReceive(t, b, a1, bus.ReceiveOptions{})
	list, got := mustBatch(t, r, 9, 10_000)
	testworld.Equal(t, got, "long last", "the next holder's batch")
	mustConfirmAll(t, list)
}

func TestBatchOfMany(t *testing.T) {
	t.Parallel()
	const senders, each = 3, 800 // more than a receiver keeps in order
	b, home := mustBus(t, bus.Options{}, agent.Root, agent.Clone(2), agent.Clone(3), a1)
	for i := range each {
		for s := range senders {
			from := []agent.ID{agent.Owner, agent.Infinity, agent.Root}[s]
			mustDrop(t, home, a1, bus.Inbox, fmt.Sprintf("%020d-%010d-00000000-%010d-from-%s.json", i+1, 1, s, from),
				fmt.Sprintf(`{"from":%q,"text":"%d %d","ts":"2026-11-20T12:00:00Z","id":"%d-%d"}`, from, s, i, s, i))
		}
	}
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	var next [senders]int
	for got := 0; got < senders*each; {
		list, _ := mustBatch(t, r, 30, 200<<10)
		if len(list) > 30 {
			t.Fatalf("%d in a batch", len(list))
		}
		got += len(list)
		for _, d := range list {
			var s, i int
			if _, err := fmt.Sscanf(d.Envelope().Text, "%d %d", &s, &i); err != nil || i != next[s] {
				t.Fatalf("got %q, want %d of this sender", d.Envelope().Text, next[s])
			}
			next[s]++
		}
		mustConfirmAll(t, list)
	}
	mustNone(t, r)
}

func TestBatchEnds(t *testing.T) {
	t.Parallel()
	b, _ := mustBus(t, bus.Options{}, agent.Root, a1)
	r := mustReceive(t, b, a1, bus.ReceiveOptions{Start: "s"})
	short, cancel := context.WithCancel(t.Context())
	cancel()
	testworld.ErrorIs(t, testworld.Err(r.Batch(short, 9, 1000)), context.Canceled, "Batch after the end of ctx")
	e := message(agent.Owner, a1, "the end")
	e.Kind, e.Start = envelope.KindShutdown, "s"
	mustSend(t, b, e)
	testworld.ErrorIs(t, testworld.Err(r.Batch(t.Context(), 9, 1000)), bus.ErrShutdown, "Batch after a shutdown")
	testworld.Must(t, r.Close())
	testworld.ErrorIs(t, testworld.Err(r.Batch(t.Context(), 9, 1000)), bus.ErrClosed, "Batch after Close")
}
