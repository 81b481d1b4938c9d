//go:build live

package phone_test

import (
	"context"
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/phone"
	"netsky/phone/chat"
	"netsky/store"
)

// What may not have gone out, and can't be looked for, is sent once more.
func TestUnconfirmedIsRepeated(t *testing.T) {
	var c clock
	w := newWorld(t, func(o *phone.Options) { c.of(o) })
	w.wire.Mu.Lock()
	w.wire.Blind = true
	first := true
	w.wire.OnSend = func(chat.Outgoing) chat.Receipt {
		if first {
			first = false
			return chat.Receipt{State: chat.Unconfirmed, Fact: "500"}
		}
		return chat.Receipt{}
	}
	w.wire.Mu.Unlock()
	w.mail(store.Message{ID: "a", From: agent.Root, Text: "report", Metadata: forPhone})
	testworld.Wait(t, "it is unconfirmed", func() bool {
		s, err := phone.Load(w.home)
		return err == nil && s.Doubtful == 1
	})
	c.set(time.Minute)
	w.says("[agent0] report (perhaps a repeat)")
}

// Of two texts with the same words, the one that is on the phone proves nothing about the other.
func TestSameWords(t *testing.T) {
	var c clock
	wire := &strangeWire{}
	wire.find = func(_ context.Context, o chat.Outgoing) (chat.Receipt, error) {
		wire.Mu.Lock()
		defer wire.Mu.Unlock()
		for _, sent := range wire.Out { // by its words, as in Messages' database
			if guid := wire.Sent[sent.ID]; sent.Text == o.Text && (o.Taken == nil || !o.Taken(guid)) {
				return chat.Receipt{State: chat.Sent, GUID: guid}, nil
			}
		}
		return chat.Receipt{State: chat.Failed, Again: true}, nil
	}
	w := newWorld(t, func(o *phone.Options) { c.of(o); strange(wire)(o) })
	first := true
	w.wire.Mu.Lock()
	w.wire.OnSend = func(chat.Outgoing) (r chat.Receipt) {
		if first {
			first, r = false, chat.Receipt{State: chat.Unconfirmed, Fact: "-1712"}
		}
		return r
	}
	w.wire.Mu.Unlock()
	w.mail(store.Message{ID: "a", From: agent.Root, Text: "Done.", Metadata: forPhone})
	w.mail(store.Message{ID: "b", From: agent.Root, Text: "Done.", Metadata: forPhone})
	w.says("[agent0] Done.")
	c.set(3 * time.Minute)
	w.says("[agent0] Done. (perhaps a repeat)")
}
