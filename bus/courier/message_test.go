package courier_test

import (
	"slices"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
	"netsky/internal/testworld"
)

// TestStates is every change that a message's state may make; no other is possible.
func TestStates(t *testing.T) {
	all := []courier.State{
		courier.StateWaiting, courier.StateClaimed, courier.StateOffered, courier.StateSeen, courier.StateHeld,
		courier.StateInterrupted, courier.StateAnswered, courier.StateExpired, courier.StateCancelled, courier.StatePoisoned,
	}
	for state, next := range map[courier.State]string{
		courier.StateWaiting:     "claimed expired cancelled poisoned",
		courier.StateClaimed:     "waiting offered seen answered expired cancelled poisoned",
		courier.StateOffered:     "seen held interrupted answered expired cancelled",
		courier.StateSeen:        "held interrupted answered cancelled", // what the model has does not expire
		courier.StateHeld:        "offered answered expired cancelled",  // seen is of the turn that failed
		courier.StateInterrupted: "offered seen held answered expired cancelled",
		courier.StatePoisoned:    "waiting",
		courier.StateAnswered:    "",
		courier.StateExpired:     "",
		courier.StateCancelled:   "",
	} {
		for _, to := range all {
			if want := slices.Contains(strings.Fields(next), string(to)); state.Becomes(to) != want {
				t.Errorf("%s becomes %s: %v, want %v", state, to, !want, want)
			}
		}
		if state.Over() != (next == "") {
			t.Errorf("%s is over: %v", state, state.Over())
		}
	}
}

// TestStateOf: what the readers say of a message, from its file and the ledger, also from one
// of an earlier version.
func TestStateOf(t *testing.T) {
	const ledger = `{"owed":[
		{"id":"offered","from":"owner"},
		{"id":"held","from":"owner","held":{"fault":{"reason":"usage_limit"},"waits":true}},
		{"id":"again","from":"owner","held":{"fault":{"reason":"usage_limit"},"waits":false}},
		{"id":"now","from":"owner","state":"held","held":{"fault":{"reason":"usage_limit"}}},
		{"id":"cut","from":"owner","state":"interrupted"},
		{"id":"odd","from":"owner","state":"held"},
		{"id":"new","from":"owner","state":"of a later version"}]}`
	h := testworld.Home(t)
	if err := h.WriteFile("state/owed/agent1.json", []byte(ledger), false); err != nil {
		t.Fatal(err)
	}
	l := courier.ReadLedger(h, me)
	for _, tt := range []struct {
		id     string
		place  bus.Place
		reason mailbox.Reason
		want   courier.State
	}{
		{id: "x", place: bus.Inbox, want: courier.StateWaiting},
		{id: "x", place: bus.Claimed, want: courier.StateClaimed},
		{id: "offered", place: bus.Claimed, want: courier.StateOffered},
		{id: "held", place: bus.Delivered, want: courier.StateHeld},
		{id: "again", place: bus.Delivered, want: courier.StateOffered},
		{id: "now", place: bus.Delivered, want: courier.StateHeld},
		{id: "cut", place: bus.Delivered, want: courier.StateInterrupted},
		{id: "odd", place: bus.Delivered, want: courier.StateOffered},
		{id: "new", place: bus.Delivered, want: "of a later version"},
		{id: "x", place: bus.Delivered, want: courier.StateAnswered},
		{id: "x", place: bus.Delivered, reason: mailbox.Expired, want: courier.StateExpired},
		{id: "x", place: bus.Delivered, reason: mailbox.Retracted, want: courier.StateCancelled},
		{id: "x", place: bus.Poison, reason: mailbox.Invalid, want: courier.StatePoisoned},
	} {
		e := bus.Entry{Place: tt.place, Reason: tt.reason, Envelope: envelope.Envelope{ID: tt.id, From: agent.Owner}}
		if got := l.StateOf(e); got != tt.want {
			t.Errorf("%s in %s %s is %s, want %s", tt.id, tt.place, tt.reason, got, tt.want)
		}
	}
	other := bus.Entry{Place: bus.Delivered, Envelope: envelope.Envelope{ID: "held", From: agent.Root}}
	if got := l.StateOf(other); got != courier.StateAnswered {
		t.Errorf("another sender's message with the same id is %s", got)
	}
	if n, _ := l.Holding(); n != 2 || l.InHand() != "new" {
		t.Errorf("%d are held, and %s is in hand", n, l.InHand())
	}
	if err := h.WriteFile("state/owed/agent1.json", []byte("{"), false); err != nil {
		t.Fatal(err)
	}
	if l := courier.ReadLedger(h, me); l.Err == nil || !l.Owes("x") || l.StateOf(bus.Entry{Place: bus.Delivered}).Over() {
		t.Errorf("of a damaged ledger: %+v", l)
	}
}
