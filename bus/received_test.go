package bus_test

import (
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/testworld"
)

// What came to a mailbox is found by its id or the beginning of one, wherever it
// lies, and nothing else is: not what only names it, nor what was sent.
func TestReceived(t *testing.T) {
	t.Parallel()
	var ms atomic.Int64
	ms.Store(time.Now().UnixMilli())
	now := func() time.Time { return time.UnixMilli(ms.Load()) }
	b, h := mustBus(t, bus.Options{Now: now}, agent.Root, agent.Owner, a1)
	send := func(id string, from agent.ID, edit ...func(*envelope.Envelope)) {
		t.Helper()
		e := message(from, a1, "text of "+id)
		e.ID, e.Time = id, now()
		for _, f := range edit {
			f(&e)
		}
		mustSend(t, b, e)
	}
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	take := func(n int) {
		t.Helper()
		for range n {
			mustConfirm(t, mustNext(t, r))
		}
	}
	// Kept on file for longer than it is remembered.
	send("m-oldest", agent.Root)
	take(1)
	ms.Add((8 * 24 * time.Hour).Milliseconds())
	for i := range 12 {
		send(fmt.Sprintf("many-%02d", i), agent.Root)
	}
	send("m-aaaa1", agent.Root)
	send("m-aaaa2", agent.Owner)
	send("m-aaaa", agent.Root)
	send("m-bbbb1", agent.Root, func(e *envelope.Envelope) { e.InReplyTo, e.Text = "m-cccc1", `names "id":"m-cccc1"` })
	send("m-dddd1", agent.Root, func(e *envelope.Envelope) { e.Expires = now().Add(time.Hour) })
	take(16)
	ms.Add((2 * time.Hour).Milliseconds())
	mustDrop(t, h, a1, bus.Inbox, "by-hand.json", `{"from":"owner","text":"by hand","ts":"2026-11-20T12:00:00Z","id":"h-hand1"}`)
	mustDrop(t, h, a1, bus.Inbox, "nameless.json", `{"from":"owner","text":"nameless","ts":"2026-11-20T12:00:00Z"}`)
	take(2)
	nameless := ""
	all := testworld.Got(b.List(a1, bus.Delivered, 0))(t)
	for _, e := range all {
		if e.Envelope.Text == "nameless" {
			nameless = e.Envelope.ID
		}
	}
	send("m-claimed1", agent.Root)
	mustNext(t, r) // in hand
	send("m-waits1", agent.Root)

	many := make([]string, bus.MostReceived)
	for i := range many {
		many[i] = fmt.Sprintf("many-%02d", i)
	}
	for _, tt := range []struct {
		id   string
		want []string
	}{
		{"m-aaaa1", []string{"m-aaaa1"}},
		{"m-aaaa", []string{"m-aaaa"}}, // an id, though others begin so
		{"m-aaa", nil},                 // too short
		{"m-aaaa2x", nil},
		{"m-bbbb", []string{"m-bbbb1"}},
		{"m-cccc1", nil},
		{"m-cccc", nil},
		{"m-dddd", []string{"m-dddd1"}},
		{"h-hand", []string{"h-hand1"}},
		{nameless, []string{nameless}},
		{nameless[:8], []string{nameless}},
		{"m-oldest", []string{"m-oldest"}},
		{"m-olde", []string{"m-oldest"}},
		{"m-claimed", []string{"m-claimed1"}},
		{"m-waits", []string{"m-waits1"}},
		{"many-0", many},
		{"many-1", []string{"many-10", "many-11"}},
		{"", nil},
	} {
		list, err := b.Received(t.Context(), a1, tt.id)
		var got []string
		for _, e := range list {
			got = append(got, e.Envelope.ID)
		}
		slices.Sort(got)
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("Received(%q) = %q, %v, want %q", tt.id, got, err, tt.want)
		}
	}
	// Without what is remembered all is looked through.
	r.Close()
	testworld.Must(t, os.Remove(h.Path(home.Mailbox(a1), "seen")))
	if list, err := b.Received(t.Context(), a1, "m-aaaa2"); err != nil || len(list) != 1 || list[0].Envelope.From != agent.Owner {
		t.Errorf("without what is remembered: %v, %v", list, err)
	}
	testworld.Len(t, testworld.Got(b.Received(t.Context(), "agent7", "m-aaaa2"))(t), 0, "without a mailbox")
}
