package phone_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/phone"
	"netsky/phone/chat"
	"netsky/phone/record"
	"netsky/store"
)

var forPhone = map[string]json.RawMessage{"phone": json.RawMessage("true")}

// A text that may have gone out is looked for; where that is not possible, it is sent again
// and says so.
func TestSentAndNotKnown(t *testing.T) {
	for _, looks := range []bool{true, false} {
		t.Run(fmt.Sprint("looks ", looks), func(t *testing.T) {
			var die sync.Once
			died := make(chan struct{})
			var w *world
			w = newWorld(t, func(o *phone.Options) {
				o.Step = func(name string) {
					if name == "sent" {
						die.Do(func() { w.leave(); close(died); runtime.Goexit() })
					}
				}
			})
			w.wire.Mu.Lock()
			w.wire.Blind = !looks
			w.wire.Mu.Unlock()
			w.mail(store.Message{ID: "a", From: agent.Root, Text: "report", Metadata: forPhone})
			<-died
			w.stop()
			w.start()
			if !looks {
				w.says("[agent0] report (perhaps a repeat)")
				return
			}
			w.wire.Text("status")
			w.says("2 agents up")
			testworld.Len(t, w.wire.Texts(), 2, "said")
		})
	}
}

// While the list of those who may speak can't be read, nobody may, and nothing is lost.
func TestGateClosed(t *testing.T) {
	w := newWorld(t, nil)
	w.gate.Mu.Lock()
	w.gate.Err = &chat.Degraded{Reason: "phone-access.json: unknown key \"alow\""}
	w.gate.Mu.Unlock()
	w.wire.Text("do it")
	testworld.Wait(t, "it is reported", func() bool {
		s, err := phone.Load(w.home)
		return err == nil && s.State == phone.StateDegraded && strings.Contains(s.Reason, "alow")
	})
	if n := len(w.inbox(agent.Root)); n != 0 {
		t.Fatalf("%d messages were taken", n)
	}
	w.gate.Mu.Lock()
	w.gate.Err = nil
	w.gate.Mu.Unlock()
	w.arrives(agent.Root, "do it")
}

// What is written after the very first start is not missed, though nobody could speak yet: the
// owner's handle was mistyped.
func TestBeginsClosed(t *testing.T) {
	w := newWorld(t, nil)
	w.stop()
	w.gate.Err = errors.New("netsky.toml has a mistake")
	if _, err := (record.Records{DB: w.db}).Hear(t.Context(), "test", "", nil, nil, nil); err != nil { // as it was made
		t.Fatal(err)
	}
	w.start()
	testworld.Wait(t, "reading has begun", func() bool {
		l, err := record.Records{DB: w.db}.Open(t.Context(), "test", "", 0, time.Now())
		return err == nil && l.Cursor != ""
	})
	w.wire.Text("do it")
	w.gate.Mu.Lock()
	w.gate.Err = nil
	w.gate.Mu.Unlock()
	w.arrives(agent.Root, "do it")
}

// Where reading goes on is reported by each run, even if nothing arrives: the report of the run
// before may be lost.
func TestReportsCursor(t *testing.T) {
	w := newWorld(t, nil)
	w.stop()
	testworld.Must(t, w.home.Remove(phone.StatusFile))
	w.start()
	testworld.Wait(t, "it is reported", func() bool { s, err := phone.Load(w.home); return err == nil && s.Cursor != "" })
}
