//go:build live

package phone_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/messagesim"
	"netsky/internal/testworld"
	"netsky/phone"
	"netsky/store"
)

// A text waits if the list of speakers can't be read in the moment before it goes out, and is then
// sent once.
func TestSpeakersUnreadWhileSending(t *testing.T) {
	var once atomic.Bool
	w := newWorld(t, func(o *phone.Options) {
		gate := o.Gate.(*messagesim.Gate)
		fail := func(err error) {
			gate.Mu.Lock()
			defer gate.Mu.Unlock()
			gate.Err = err
		}
		o.Step = func(step string) {
			if step == "begun" && !once.Swap(true) {
				fail(errors.New("it is locked"))
				time.AfterFunc(100*time.Millisecond, func() { fail(nil) })
			}
		}
	})
	w.mail(store.Message{ID: "a", From: agent.Root, Text: "report", Metadata: forPhone})
	testworld.Wait(t, "it is not sent at first", once.Load)
	w.says("report")
	testworld.Wait(t, "nothing waits", func() bool { return w.waiting() == 0 })
	if list := w.wire.Texts(); len(list) != 1 || strings.Contains(list[0], "repeat") {
		t.Errorf("%q", list)
	}
}
