package phone_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/messagesim"
	"netsky/internal/testworld"
	"netsky/phone"
	"netsky/phone/chat"
	"netsky/phone/record"
	"netsky/store"
)

// A second owner is admitted besides the first until they are denied.
type second struct {
	*messagesim.Gate
	denied *atomic.Bool
}

var theirs, _ = chat.KeyOf("iMessage;-;+15550200")

func (g second) Speakers() (phone.Speakers, error) {
	_, err := g.Gate.Speakers()
	return g, err
}

func (g second) May(handle string) bool {
	return g.Gate.May(handle) || handle == theirs.Identifier && !g.denied.Load()
}
func (g second) OwnerChat(c chat.Chat) bool { return c.Direct && g.May(c.Identifier) }

// Who is denied gets nothing any more: no answer to what they wrote before, nor what waited. What
// needs the owner is shown in the chat that is left.
func TestDeniedGetsNothing(t *testing.T) {
	var denied atomic.Bool
	w := newWorld(t, func(o *phone.Options) { o.Gate = second{o.Gate.(*messagesim.Gate), &denied} })
	refuse := chat.Receipt{State: chat.Failed, Again: true, Fact: "not now"}
	w.wire.Mu.Lock()
	w.wire.OnSend = func(chat.Outgoing) chat.Receipt { return refuse }
	w.wire.Mu.Unlock()
	w.wire.Put(chat.Message{Text: "where is it?", Chat: theirs, Handle: theirs.Identifier})
	w.arrives(agent.Root, "where is it?")
	asked := w.inbox(agent.Root)[0]
	w.desk.asks("kxqvd", "rm -rf build")
	testworld.Wait(t, "the item waits to be sent to them", func() bool { return w.waiting() > 0 })

	denied.Store(true)
	w.mail(store.Message{ID: "a", From: agent.Root, Text: "it is in the safe", InReplyTo: asked.ID})
	w.mail(store.Message{ID: "b", From: agent.Root, Text: "report", Metadata: forPhone})
	w.wire.Mu.Lock()
	w.wire.OnSend = nil
	w.wire.Mu.Unlock()
	w.says("report")
	w.says("kxqvd")
	testworld.Wait(t, "nothing waits", func() bool { return w.waiting() == 0 })
	w.wire.Mu.Lock()
	defer w.wire.Mu.Unlock()
	for _, out := range w.wire.Out {
		if out.Chat.Key != mine.Key || strings.Contains(out.Text, "safe") {
			t.Errorf("%s got %q", out.Chat.Key, out.Text)
		}
	}
}

// waiting counts what is to be sent.
func (w *world) waiting() int {
	w.t.Helper()
	tally := testworld.Got(record.Records{DB: w.db}.Count(w.t.Context(), "test", time.Now()))(w.t)
	return tally.Waiting
}

// Who is denied in the moment before a text goes out does not get that text.
func TestDeniedWhileSending(t *testing.T) {
	var denied atomic.Bool
	w := newWorld(t, func(o *phone.Options) {
		o.Gate = second{o.Gate.(*messagesim.Gate), &denied}
		o.Step = func(step string) {
			if step == "begun" {
				denied.Store(true)
			}
		}
	})
	w.wire.Put(chat.Message{Text: "where is it?", Chat: theirs, Handle: theirs.Identifier})
	w.arrives(agent.Root, "where is it?")
	w.mail(store.Message{ID: "a", From: agent.Root, Text: "it is in the safe", InReplyTo: w.inbox(agent.Root)[0].ID})
	testworld.Wait(t, "they are denied", denied.Load)
	testworld.Wait(t, "nothing waits", func() bool { return w.waiting() == 0 })
	w.wire.Mu.Lock()
	defer w.wire.Mu.Unlock()
	for _, out := range w.wire.Out {
		if out.Chat.Key != mine.Key {
			t.Errorf("%s got %q", out.Chat.Key, out.Text)
		}
	}
}
