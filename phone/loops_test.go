package phone_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/phone"
	"netsky/phone/chat"
	"netsky/phone/record"
	"netsky/store"
)

// A message to oneself makes two rows, in either order.
func TestSelfChatPairs(t *testing.T) {
	w := newWorld(t, nil)
	now := time.Now()
	w.wire.Put(
		chat.Message{Text: "first", FromMe: true, At: now}, chat.Message{Text: "first", At: now},
		chat.Message{Text: "second", At: now}, chat.Message{Text: "second", FromMe: true, At: now.Add(2 * time.Second)},
		chat.Message{Text: "", FromMe: true, At: now}, chat.Message{Text: "third", At: now},
		chat.Message{Text: "only mine", FromMe: true, At: now},
		chat.Message{Text: "said twice", At: now}, chat.Message{Text: "said twice", At: now.Add(time.Second)},
		chat.Message{Text: "last"},
	)
	w.arrives(agent.Root, "last")
	var got []string
	for _, e := range w.inbox(agent.Root) {
		got = append(got, e.Text)
	}
	if len(got) != 7 || strings.Count(strings.Join(got, ","), "said twice") != 2 {
		t.Errorf("taken: %q", got)
	}
}

// What we said comes back as up to two rows, at once or half a minute later, and before or
// after the transport has named it.
func TestEchoes(t *testing.T) {
	w := newWorld(t, nil)
	send := w.wire.OnSend
	w.wire.Mu.Lock()
	w.wire.OnSend = func(o chat.Outgoing) chat.Receipt {
		if strings.Contains(o.Text, "early") { // its rows are there before the call returns
			w.wire.Rows = append(w.wire.Rows, echo(o, "out-1", true), echo(o, "early-2", false))
			time.Sleep(0)
		}
		if send != nil {
			return send(o)
		}
		return chat.Receipt{}
	}
	w.wire.Mu.Unlock()
	w.mail(store.Message{ID: "a", From: agent.Root, Text: "early", Metadata: forPhone})
	w.says("early")
	w.mail(store.Message{ID: "b", From: agent.Root, Text: "“late” — done…", Metadata: forPhone})
	late := w.says("late")
	w.wire.Put(
		chat.Message{GUID: w.guidOf("late"), Text: strings.NewReplacer("“", `"`, "”", `"`, "…", "...").Replace(late), FromMe: true},
		chat.Message{GUID: "late-2", Text: late, At: time.Now().Add(25 * time.Second)},
		chat.Message{Text: "done"},
	)
	w.arrives(agent.Root, "done") // the owner's own short answer
	testworld.Len(t, w.inbox(agent.Root), 1, "taken")
	verdicts := map[string]int{}
	for _, h := range w.heard() {
		verdicts[h.Verdict]++
	}
	if verdicts[phone.VerdictEcho] != 4 || verdicts[phone.VerdictOrder] != 1 {
		t.Errorf("verdicts %v", verdicts)
	}
}

func echo(o chat.Outgoing, guid string, mine bool) chat.Message {
	m := chat.Message{GUID: guid, Chat: o.Chat, Text: o.Text, FromMe: mine, Kind: chat.Text, Service: chat.ServiceIMessage, At: time.Now()}
	if !mine {
		m.Handle = me
	}
	return m
}

// Without the ledger, the signature alone keeps our texts from being orders.
func TestSignature(t *testing.T) {
	for text, want := range map[string]bool{
		"[agent0] done": true, " [netsky] alert: x": true, "[AGENT3 1/2] x": true, "\u200b[netsky] hidden mark": true, "[agentinfinity, error] x": true,
		"agent0: do it": false, "[note] x": false, "see [agent0]": false, "": false, "[": false,
	} {
		testworld.Equal(t, phone.Signed(text), want, "Signed(%q)", text)
	}
}

// Two programs that answer each other are stopped.
func TestBrake(t *testing.T) {
	w := newWorld(t, nil)
	for i := range 100 {
		w.wire.Put(chat.Message{GUID: fmt.Sprint("loop-", i), Text: "I am away"})
	}
	w.says("Too many messages")
	w.wire.Text("still me")
	testworld.Wait(t, "the last is heard", func() bool { return len(w.heard()) == 101 })
	testworld.Equal(t, len(w.inbox(agent.Root)), 5, "were taken")
	testworld.Equal(t, len(w.inbox(agent.Owner)), 1, "notices by mail")
	testworld.Len(t, w.wire.Texts(), 1, "one notice")
}

// Twenty different ones within a minute are enough, too; the same over an hour are not.
func TestBrakeByCount(t *testing.T) {
	w := newWorld(t, nil)
	now := time.Now()
	for i := range 15 {
		w.wire.Put(chat.Message{Text: fmt.Sprint("slow ", i), At: now.Add(time.Duration(i-15) * 30 * time.Second)})
	}
	w.arrives(agent.Root, "slow 14")
	for i := range 30 {
		w.wire.Put(chat.Message{Text: fmt.Sprint("fast ", i), At: now})
	}
	w.says("Too many messages")
	if n := len(w.inbox(agent.Root)); n != 33 && n != 34 && n != 35 { // some slow ones are of the same minute
		t.Errorf("%d were taken", n)
	}
}

func (w *world) heard() []record.Heard {
	w.t.Helper()
	return testworld.Got(record.Records{DB: w.db}.HeardSince(w.t.Context(), "test", mine.Key, time.Now().Add(-time.Hour)))(w.t)
}
