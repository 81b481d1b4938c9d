package phone_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/internal/testworld"
	"netsky/phone"
	"netsky/phone/chat"
	"netsky/store"
)

// A later is a world whose clock a test moves.
type later struct {
	*world
	clock *clock
}

func newLater(t *testing.T) later {
	c := &clock{}
	return later{newWorld(t, func(o *phone.Options) {
		o.Now, o.Look = c.now, 5*time.Millisecond
		o.Pace = phone.Pace{Minute: 1000, Hour: 1000}
	}), c}
}

// stands makes these all that needs the owner, and waits until that was seen.
func (l later) stands(list ...attention.Need) {
	l.t.Helper()
	l.desk.mu.Lock()
	l.desk.list = list
	l.desk.mu.Unlock()
	l.looks()
}

// after lets time pass and waits until the bridge has looked again.
func (l later) after(d time.Duration) {
	l.t.Helper()
	l.clock.set(d)
	l.looks()
}

// looks waits for some looks at what needs the owner: the first may have begun before.
func (l later) looks() {
	l.t.Helper()
	l.desk.mu.Lock()
	before := l.desk.looks
	l.desk.mu.Unlock()
	testworld.Wait(l.t, "another look", func() bool {
		l.desk.mu.Lock()
		defer l.desk.mu.Unlock()
		return l.desk.looks >= before+3
	})
}

// texted waits until so many texts with this in them were sent, and no more.
func (l later) texted(part string, want int) {
	l.t.Helper()
	count := func() (n int) {
		for _, s := range l.wire.Texts() {
			if strings.Contains(s, part) {
				n++
			}
		}
		return n
	}
	testworld.WaitOr(l.t, func() bool { return count() >= want }, func() string { return fmt.Sprintf("%q was sent %d times, want %d", part, count(), want) })
	guid := fmt.Sprintf("later-%d", time.Now().UnixNano())
	before := len(l.wire.Texts())
	l.wire.Put(chat.Message{GUID: guid, Text: "status", At: l.clock.now()}) // what waits goes out before this is answered, or right after it
	testworld.WaitOr(l.t, func() bool {
		return slices.ContainsFunc(l.wire.Texts()[before:], func(s string) bool { return strings.Contains(s, "2 agents up") })
	}, func() string { return "no answer" })
	if n := count(); n != want {
		l.t.Errorf("%q was sent %d times, want %d: %q", part, n, want, l.wire.Texts())
	}
	l.clock.set(time.Minute) // so that this is no storm
}

func only(s attention.Sources) attention.Need { return attention.List(s)[0] }

func stuck(state agent.State, start, detail string, f agent.Fault) attention.Sources {
	return attention.Sources{Agents: []attention.Agent{{ID: "agent1", State: state, Start: start, Detail: detail, Wanted: true, Fault: f}}}
}

// Whatever needs the owner is texted once, also by the next bridge and where it is gone for a
// moment; and again if it was over for a while.
func TestOnceAnOccurrence(t *testing.T) {
	login := agent.Fault{Reason: agent.Login, Account: "a@example.org", Text: "expired"}
	limit := agent.Fault{Reason: agent.UsageLimit, Account: "a@example.org", Text: "5 hours"}
	for name, tt := range map[string]struct {
		n    attention.Need
		part string
		wait time.Duration
	}{
		"login":    {only(stuck(agent.Blocked, "s", "", login)), "is not logged in", 31 * time.Second},
		"limit":    {only(stuck(agent.Blocked, "s", "", limit)), "is not served by its vendor", 121 * time.Second},
		"hang":     {only(stuck(agent.Hung, "s", "no sign", agent.Fault{})), "shows no activity", 31 * time.Second},
		"crashes":  {only(stuck(agent.CrashLooping, "s", "exited 3", agent.Fault{})), "keeps crashing", 31 * time.Second},
		"question": {only(attention.Sources{Questions: []attention.Asked{{ID: "m-1", From: "agent0", Text: "Which port?"}}}), "Which port?", 31 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLater(t)
			l.stands(tt.n)
			l.after(5 * time.Second)
			l.texted(tt.part, 0)
			l.after(tt.wait)
			l.texted(tt.part, 1)
			l.stop()
			l.start()
			l.looks()
			l.after(tt.wait)
			l.texted(tt.part, 1)
			l.stands()
			l.stands(tt.n)
			l.after(tt.wait)
			l.texted(tt.part, 1)
			l.stands()
			l.after(6 * time.Minute)
			l.stands(tt.n)
			l.after(tt.wait)
			l.texted(tt.part, 2)
		})
	}
}

// What is gone before its turn is not texted, and is texted when it comes again.
func TestGoneBeforeItsTurn(t *testing.T) {
	l := newLater(t)
	n := only(stuck(agent.Hung, "s", "no sign", agent.Fault{}))
	l.wire.Mu.Lock()
	down := true
	l.wire.OnSend = func(chat.Outgoing) chat.Receipt {
		if down {
			return chat.Receipt{State: chat.Failed, Again: true, Wait: 10 * time.Minute}
		}
		return chat.Receipt{}
	}
	l.wire.Mu.Unlock()
	other := only(stuck(agent.Hung, "other", "another sign", agent.Fault{}))
	l.stands(other) // which keeps the chat busy, so that the item waits
	l.after(31 * time.Second)
	l.wire.Mu.Lock()
	down = false
	l.wire.Mu.Unlock()
	l.stands()
	l.after(11 * time.Minute)
	l.texted("another sign", 1) // it was tried already: it is not taken back
	l.stands(n)
	l.stands()
	l.after(31 * time.Second)
	l.texted("no sign", 0)
	l.stands(n)
	l.after(31 * time.Second)
	l.texted("no sign", 1)
}

// The same dialog once more is another question: it is texted again, and an answer to the text
// of the first is none to the second.
func TestDialogOnceMore(t *testing.T) {
	l := newLater(t)
	dialog := func() attention.Need {
		return only(attention.Sources{Agents: []attention.Agent{{
			ID: "agent1", State: agent.Waiting, Asks: true, Decidable: true, Runtime: "claude", Detail: "key: Use it?", Since: store.At(l.clock.now()),
		}}})
	}
	n := dialog()
	l.stands(n)
	l.after(31 * time.Second)
	first := l.guidOf("key: Use it?")
	again := dialog()
	if again.Digest != n.Digest {
		t.Fatal("it is another item: this test shows nothing")
	}
	l.stands(again)
	l.wire.Put(chat.Message{Kind: chat.Reaction, Reaction: chat.Like, About: first, At: l.clock.now()})
	testworld.Wait(t, "it is shown again", func() bool { return len(l.wire.Texts()) == 2 })
	l.taken()
	l.after(31 * time.Second)
	l.texted("key: Use it?", 2) // what the reaction has shown need not be shown again
	l.wire.Put(chat.Message{Text: "yes " + n.Code, At: l.clock.now()})
	l.taken(n.Code + " true")
}
