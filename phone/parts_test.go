package phone_test

import (
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/phone"
	"netsky/phone/chat"
)

// What a phone splits is one order: a long text, an album, words with a link. A command behind it stands
// alone, and so does what is a part of nothing.
func TestParts(t *testing.T) {
	w := newWorld(t, nil)
	cut := strings.Repeat("x", 4096)
	w.wire.Put(
		chat.Message{GUID: "1", Text: "agent1: first", More: true}, chat.Message{GUID: "2", Text: cut, After: "1", More: true, Attachments: []chat.Attachment{{GUID: "f", Name: "a.jpg"}}},
		chat.Message{GUID: "3", Text: "third", After: "2"}, chat.Message{GUID: "4", Text: "status", After: "3"}, chat.Message{GUID: "5", Text: "not of it", After: "unknown"},
	)
	w.says("2 agents up")
	if e := w.arrives("agent1", "first\n"+cut+"third"); len(e.Attachments) != 1 {
		t.Errorf("files %q", e.Attachments)
	}
	w.arrives(agent.Root, "not of it")
	w.wire.Put(chat.Message{GUID: "6", Text: "too late", After: "3"})
	w.arrives(agent.Root, "too late\n(This belongs to the owner's message before it.)")
	if n, m := len(w.inbox("agent1")), len(w.inbox(agent.Root)); n != 1 || m != 2 {
		t.Errorf("%d and %d messages", n, m)
	}
}

// Only what is known not to be whole waits for more: with a clock that does not move, anything else is
// sent on, and its later part is an order of its own.
func TestPartsKeepNothingBack(t *testing.T) {
	now := time.Now()
	w := newWorld(t, func(o *phone.Options) { o.Now = func() time.Time { return now } })
	w.wire.Put(chat.Message{GUID: "1", Text: "plain", At: now}, chat.Message{GUID: "2", Text: strings.Repeat("long ", 1000), At: now})
	w.arrives(agent.Root, "plain")
	w.arrives(agent.Root, strings.TrimSpace(strings.Repeat("long ", 1000)))
	w.wire.Put(chat.Message{GUID: "3", Text: "not whole", More: true, At: now})
	testworld.Wait(t, "it is heard", func() bool { return len(w.heard()) == 3 })
	w.wire.Put(chat.Message{GUID: "4", Text: "status", At: now})
	w.says("2 agents up")
	testworld.Equal(t, len(w.inbox(agent.Root)), 2, "were sent on")
}
