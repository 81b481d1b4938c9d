//go:build live

package phone_test

import (
	"testing"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/phone/chat"
)

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
