//go:build live

package phone_test

import (
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/phone"
	"netsky/phone/chat"
)

// What waits for a part of it waits on in a later run; the second rows of a message to oneself are no
// parts. What waits long enough is sent on as it is.
func TestPartAfterACrash(t *testing.T) {
	now := time.Now()
	var later atomic.Int64 // no time passes but this
	w := newWorld(t, func(o *phone.Options) { o.Now = func() time.Time { return now.Add(time.Duration(later.Load())) } })
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
	w.wire.Put(chat.Message{GUID: "5", Text: "never comes", More: true, At: now})
	testworld.Wait(t, "it is heard", func() bool { return len(w.heard()) == 5 })
	later.Store(int64(20 * time.Second))
	w.arrives(agent.Root, "never comes")
	testworld.Equal(t, len(w.inbox(agent.Root)), 2, "messages")
}
