//go:build live

package phone_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/phone"
	"netsky/phone/chat"
	"netsky/phone/record"
	"netsky/store"
)

// A bridge that dies between any two steps leaves what the next one finishes, once. Here it
// dies by never coming back from the step; what it held in memory is lost with it.
func TestDeathBetweenSteps(t *testing.T) {
	for _, step := range []string{"tried", "on the bus", "acted", "begun", "sent"} {
		t.Run(step, func(t *testing.T) {
			var die sync.Once
			died := make(chan struct{})
			var w *world
			w = newWorld(t, func(o *phone.Options) {
				o.Step = func(name string) {
					if name == step {
						die.Do(func() {
							w.leave()
							close(died)
							runtime.Goexit()
						})
					}
				}
			})
			guid := w.wire.Text("build it")
			if step == "begun" || step == "sent" {
				w.answer(w.arrives(agent.Root, "build it").ID, "built")
			}
			<-died
			w.stop()
			w.start()
			e := w.arrives(agent.Root, "build it")
			w.answer(e.ID, "built")
			w.says("built")
			w.wire.Text("status") // another round, after which nothing more can come of the first
			w.says("2 agents up")
			if n := len(w.inbox(agent.Root)); n != 1 {
				t.Errorf("%s arrived %d times", guid, n)
			}
			if texts := w.wire.Texts(); len(slices.DeleteFunc(texts, func(s string) bool { return !strings.Contains(s, "built") })) != 1 {
				t.Errorf("said %q, want the answer once", w.wire.Texts())
			}
		})
	}
}

func (w *world) answer(id, text string) {
	w.t.Helper()
	w.mail(store.Message{ID: "r-" + id, From: agent.Root, Kind: "reply", Text: text, InReplyTo: id})
}

// What can't be sent waits, is reported, and goes out later.
func TestWaits(t *testing.T) {
	w := newWorld(t, nil)
	tries := 0
	w.wire.Mu.Lock()
	w.wire.OnSend = func(o chat.Outgoing) chat.Receipt {
		if tries++; tries <= 1 {
			return chat.Receipt{State: chat.Failed, Fact: "Messages is not running", Again: true}
		}
		return chat.Receipt{}
	}
	w.wire.Mu.Unlock()
	w.mail(store.Message{ID: "a", From: agent.Root, Text: "report", Metadata: forPhone})
	testworld.Wait(t, "it is reported", func() bool {
		s, err := phone.Load(w.home)
		return err == nil && s.Waiting == 1 && s.Facts[record.Pending] == "Messages is not running"
	})
	w.says("report")
}

// An alert that had to wait is reported as one that reached the owner once it was sent. What
// became of another text was said to whoever sent it, and is not counted.
func TestAlertReaches(t *testing.T) {
	var works atomic.Bool
	var reached atomic.Int64
	w := newWorld(t, func(o *phone.Options) { o.Reached = func() { reached.Add(1) } })
	w.wire.Mu.Lock()
	w.wire.OnSend = func(o chat.Outgoing) chat.Receipt {
		switch {
		case strings.Contains(o.Text, "hello"):
			return chat.Receipt{State: chat.Failed, Fact: "no such chat"}
		case !works.Load():
			return chat.Receipt{State: chat.Failed, Fact: "not running", Again: true}
		}
		return chat.Receipt{}
	}
	w.wire.Mu.Unlock()
	if _, got, err := phone.Text(t.Context(), w.options(), phone.Direct{Text: "hello"}); err != nil || got.State != chat.Failed {
		t.Fatalf("hello: %+v, %v", got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	to, _, err := phone.Text(ctx, w.options(), phone.Direct{Text: "database down", Alert: true})
	if !errors.Is(err, phone.ErrWaits) || to.Key != mine.Key {
		t.Fatalf("alert to %s: %v", to.Key, err)
	}
	tally, err := record.Records{DB: w.db}.Count(t.Context(), "test", time.Now())
	if err != nil || tally.Waiting != 1 || tally.Failed != 0 || reached.Load() != 0 {
		t.Errorf("%+v, %v; %d alerts reached the owner", tally, err, reached.Load())
	}
	works.Store(true)
	w.says("[netsky] database down")
	testworld.Wait(t, "it is reported", func() bool { return reached.Load() == 1 })
}
