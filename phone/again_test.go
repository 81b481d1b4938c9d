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
	"netsky/view"
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
	return attention.Sources{Agents: []view.Agent{{ID: "agent1", State: state, Start: start, Detail: detail, Wanted: true, Fault: f}}}
}

// The same dialog once more is another question: it is texted again, and an answer to the text
// of the first is none to the second.
func TestDialogOnceMore(t *testing.T) {
	l := newLater(t)
	dialog := func() attention.Need {
		return only(attention.Sources{Agents: []view.Agent{{
			ID: "agent1", State: agent.Waiting, Decidable: true, Runtime: "claude", Detail: "key: Use it?", Since: store.At(l.clock.now()),
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
	testworld.Wait(t, "it is shown again", func() bool { return len(l.wire.Texts()) == 2 })
	l.wire.Put(chat.Message{Kind: chat.Reaction, Reaction: chat.Like, About: first, At: l.clock.now()})
	testworld.Wait(t, "the reaction is answered", func() bool { return len(l.wire.Texts()) == 3 })
	testworld.Contains(t, l.wire.Texts()[2], "Nothing was answered")
	l.taken()
	l.after(31 * time.Second)
	l.texted("key: Use it?", 3) // what the reaction has shown need not be shown again
	l.wire.Put(chat.Message{Text: "yes " + n.Code, At: l.clock.now()})
	l.taken(n.Code + " true")
}
