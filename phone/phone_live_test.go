//go:build live

package phone_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/internal/messagesim"
	"netsky/internal/testworld"
	"netsky/phone"
	"netsky/phone/chat"
	"netsky/phone/record"
	"netsky/store"
)

// Ten thousand items are one list, of which each can be seen and answered; looking at them
// again costs little.
func TestTenThousand(t *testing.T) {
	l := newLater(t)
	list := make([]attention.Need, 10_000)
	for i := range list {
		code := []byte("aaaaa")
		for at, n := 4, i; at >= 0; at, n = at-1, n/25 {
			code[at] = "abcdefghijkmnopqrstuvwxyz"[n%25]
		}
		list[i] = only(attention.Sources{Approvals: []agent.Approval{{Code: string(code), Agent: "agent1", Tool: "Bash", Text: fmt.Sprint("command ", i)}}})
	}
	began := time.Now()
	l.stands(list...)
	l.says("10000 items need you")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 3 {
		l.looks()
	}
	runtime.ReadMemStats(&after)
	t.Logf("listed and looked at ten times within %v; %d MiB live", time.Since(began), after.HeapAlloc>>20)
	last := list[9_999]
	l.wire.Put(chat.Message{Text: "yes " + last.Code, At: l.clock.now()})
	l.says("or no " + last.Code) // it was in the list only: it is shown first
	l.wire.Put(chat.Message{Text: "yes " + last.Code, At: l.clock.now()})
	l.taken(last.Code + " true")
	parts := slices.DeleteFunc(l.wire.Texts(), func(s string) bool { return !strings.HasPrefix(s, "[netsky ") })
	if len(parts) != 5 || !strings.Contains(parts[4], "text `needs` for the rest") {
		t.Errorf("%d parts", len(parts))
	}
}

// A transport that never answers is reported.
func TestNextHangs(t *testing.T) {
	var c clock
	alerts := make(chan string, 10)
	s := &strangeWire{next: func(ctx context.Context, _ string) (chat.Batch, error) { <-ctx.Done(); return chat.Batch{}, ctx.Err() }}
	w := newWorld(t, func(o *phone.Options) {
		c.of(o)
		strange(s)(o)
		o.Alert = func(_ context.Context, _, body string) { alerts <- body }
	})
	testworld.Wait(t, "it runs", func() bool { return w.home.Mark(phone.StatusFile).Exists() })
	c.set(6 * time.Minute)
	testworld.Wait(t, "it is told", func() bool {
		s, err := phone.Load(w.home)
		return err == nil && s.State == phone.StateDegraded && len(alerts) == 1
	})
}

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

// A chat gets no more than a hundred texts in an hour, of which mail takes eighty: the rest is
// for what the owner has to decide.
func TestHour(t *testing.T) {
	c := &clock{}
	w := newWorld(t, func(o *phone.Options) {
		c.of(o)
		o.Pace = phone.Pace{Minute: 1000, Hour: 100}
	})
	for i := range 90 {
		w.mail(store.Message{ID: fmt.Sprint("m-", i), From: agent.Root, Text: fmt.Sprintf("report %d.", i), Metadata: forPhone})
	}
	sent := func(n int) {
		t.Helper()
		testworld.WaitOr(t, func() bool { return len(w.wire.Texts()) == n }, func() string { return fmt.Sprintf("%d texts, want %d", len(w.wire.Texts()), n) })
	}
	sent(80)
	rec := record.Records{DB: w.db}
	for i := range 25 {
		testworld.Must(t, rec.Say(t.Context(), record.Said{Line: "test", ID: fmt.Sprint("a-", i), Part: 1, Parts: 1, Chat: record.Chat{Key: mine.Key, GUID: mine.GUID},
			Kind: "alert", Rank: 2, Text: "[netsky] an alert", Created: store.At(c.now())}))
	}
	sent(100)
	testworld.Equal(t, w.wire.Texts()[99], "[netsky] an alert", "the hundredth")
	testworld.Wait(t, "it is reported", func() bool {
		s, err := phone.Load(w.home)
		return err == nil && strings.Contains(strings.Join(s.Lines(c.now()), "\n"), "phone: enough texts went to you within the hour; more are sent from ")
	})
	c.set(time.Hour)
	sent(115) // five alerts and ten reports
}
