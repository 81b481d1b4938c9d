package bus_test

import (
	"io/fs"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/testworld"
)

// TestFile: what a reader has read in the inbox is filed in one go, copies with
// their reason, and nothing else is touched.
func TestFile(t *testing.T) {
	t.Parallel()
	b, h := mustBus(t, bus.Options{}, agent.Root, agent.Owner)
	var names []string
	for _, id := range []string{"a", "b", "b", "c"} {
		e := message(agent.Root, agent.Owner, id)
		e.ID = id
		names = append(names, mustSend(t, b, e).File)
	}
	left := mustSend(t, b, message(agent.Root, agent.Owner, "not read"))
	mustDrop(t, h, agent.Owner, bus.Inbox, "bad.json", "{")
	n, err := b.File(agent.Owner, append(names, "bad.json", "gone.json", "../x.json"))
	if err != nil || n != 4 {
		t.Fatalf("File = %d, %v, want 4", n, err)
	}
	mustCount(t, b, agent.Owner, bus.Inbox, 2)
	mustCount(t, b, agent.Owner, bus.Claimed, 0)
	mustCount(t, b, agent.Owner, bus.Delivered, 4)
	testworld.Len(t, testworld.Got(b.Mail(agent.Owner, false))(t), 5, "all but the copy")
	testworld.Len(t, testworld.Got(b.Mail(agent.Owner, true))(t), 6, "Mail of all")
	for name, place := range map[string]bus.Place{names[0]: bus.Delivered, left.File: bus.Inbox, "bad.json": bus.Inbox} {
		testworld.Equal(t, testworld.Got(b.Find(agent.Owner, name))(t).Place, place, "Find(%s)", name)
	}
	if e, err := b.Find(agent.Owner, names[2]); err != nil || !strings.Contains(e.Why, "already delivered") {
		t.Errorf("the copy: %+v, %v", e, err)
	}
	testworld.ErrorIs(t, testworld.Err(b.Find(agent.Owner, "gone.json")), fs.ErrNotExist, "Find of nothing")
	// What is filed is remembered, by whoever comes next.
	list := []envelope.Envelope{{From: agent.Root, ID: "a"}, {From: a1, ID: "a"}, {From: agent.Root, ID: left.ID}, {From: agent.Root, ID: "c"}}
	known, err := b.Remembered(agent.Owner, list)
	if err != nil || !known[0] || known[1] || known[2] || !known[3] {
		t.Errorf("Remembered = %v, %v", known, err)
	}
	testworld.Equal(t, testworld.Got(b.Drain(t.Context(), agent.Owner, 0, func(envelope.Envelope) error { return nil }))(t), 1, "what was left")
	// A receiver has the mailbox: it files them itself.
	mustReceive(t, b, agent.Owner, bus.ReceiveOptions{})
	testworld.ErrorIs(t, testworld.Err(b.File(agent.Owner, names)), home.ErrLocked, "File beside a receiver")
}

// TestFileAfterACrash: what a dead holder had claimed is filed too.
func TestFileAfterACrash(t *testing.T) {
	t.Parallel()
	b, _ := mustBus(t, bus.Options{}, agent.Root, agent.Owner)
	sent := mustSend(t, b, message(agent.Root, agent.Owner, "hi"))
	r := mustReceive(t, b, agent.Owner, bus.ReceiveOptions{})
	mustNext(t, r)
	testworld.Must(t, r.Close())
	mustCount(t, b, agent.Owner, bus.Claimed, 1)
	if n, err := b.File(agent.Owner, []string{sent.File}); err != nil || n != 1 {
		t.Fatalf("File = %d, %v", n, err)
	}
	mustCount(t, b, agent.Owner, bus.Delivered, 1)
	e, ok, err := b.FindAnswer(t.Context(), "", agent.Owner, "none", time.Time{})
	if ok || err != nil {
		t.Errorf("FindAnswer = %+v, %v", e, err)
	}
}
