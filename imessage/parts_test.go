package imessage_test

import (
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/imessage"
	"netsky/imessage/chat"
	"netsky/internal/testworld"
)

// What a phone splits is one order: a long text, an album, words with a link. A command behind it, a
// message to another agent and what comes later stand alone.
func TestParts(t *testing.T) {
	w := newWorld(t, nil)
	w.wire.Put(
		chat.Message{GUID: "1", Text: "first", More: true}, chat.Message{GUID: "2", Text: "second", After: "1", Attachments: []chat.Attachment{{GUID: "f", Name: "a.jpg"}}},
		chat.Message{GUID: "3", Text: "third", After: "2"}, chat.Message{GUID: "4", Text: "status", After: "3"},
		chat.Message{GUID: "5", Text: "agent1: do it", After: "3"}, chat.Message{GUID: "6", Text: "not of it", After: "x"},
	)
	w.says("2 agents up")
	e := w.arrives(agent.Root, "first\nsecond\nthird")
	if len(e.Attachments) != 1 {
		t.Errorf("files %q", e.Attachments)
	}
	w.arrives("agent1", "do it")
	w.arrives(agent.Root, "not of it")
	w.wire.Put(chat.Message{GUID: "7", Text: "too late", After: "3"})
	w.arrives(agent.Root, "too late")
	if n := len(w.inbox(agent.Root)); n != 3 {
		t.Errorf("%d messages", n)
	}
}

// Where the first is acted on before a part of it is on record, the part is an order of its own.
func TestPartAfterACrash(t *testing.T) {
	now := time.Now()
	var later atomic.Int64 // no time passes but this
	w := newWorld(t, func(o *imessage.Options) { o.Now = func() time.Time { return now.Add(time.Duration(later.Load())) } })
	w.wire.Put(chat.Message{GUID: "1", Text: "words", More: true, FromMe: true, At: now})
	testworld.Wait(t, "it is heard", func() bool { return len(w.heard()) == 1 })
	w.stop()
	w.start() // it waits on, and its other row and the link's two arrive
	w.wire.Put(
		chat.Message{GUID: "2", Text: "words", More: true, At: now}, chat.Message{GUID: "3", Text: "https://example.org", After: "2", At: now},
		chat.Message{GUID: "4", Text: "https://example.org", After: "1", FromMe: true, At: now.Add(time.Second)},
	)
	testworld.Wait(t, "all is heard", func() bool { return len(w.heard()) == 4 })
	later.Store(int64(6 * time.Second))
	w.arrives(agent.Root, "words\nhttps://example.org")
	w.wire.Put(chat.Message{GUID: "5", Text: "more", After: "3", At: now})
	w.arrives(agent.Root, "more")
	if n := len(w.inbox(agent.Root)); n != 2 {
		t.Errorf("%d messages", n)
	}
}
