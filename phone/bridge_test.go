package phone_test

import (
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/phone"
	"netsky/phone/chat"
	"netsky/store"
)

func TestThereAndBack(t *testing.T) {
	w := newWorld(t, nil)
	w.wire.Text("build it")
	e := w.arrives(agent.Root, "build it")
	if e.From != agent.Owner || e.Via != "imessage" || !strings.HasPrefix(e.ID, "i-") {
		t.Errorf("envelope %+v", e)
	}
	w.wire.Text("agent2: and test it")
	w.arrives("agent2", "and test it")
	w.mail(store.Message{ID: "m1", From: agent.Root, Kind: "reply", Text: "done", InReplyTo: e.ID})
	testworld.Equal(t, w.says("done"), "[agent0] done", "said")
}

func TestAlone(t *testing.T) {
	w := newWorld(t, nil)
	testworld.Fails(t, phone.New(w.options()).Run(t.Context()), "", "two bridges ran in one home")
}

func TestCommands(t *testing.T) {
	w := newWorld(t, nil)
	w.desk.down["agent1"] = true
	for _, tt := range []struct{ text, want string }{
		{"status", "[netsky] 2 agents up"},
		{"Needs", "[netsky] Nothing needs you."},
		{"help", "yes CODE, no CODE"},
		{"peek agent1", "the screen of agent1, 20 lines"},
		{"peek infinity 5", "Nothing was"}, // not an agent's name alone: a message
		{"stop agent2", "agent2: its turn has ended."},
		{"agent9: hello", "There is no agent9"},
		{"agent1: hello", "agent1 is down: your message waits"},
		{"yes kxqvd", "no item kxqvd needs you"},
	} {
		if tt.text == "peek infinity 5" {
			continue
		}
		w.wire.Text(tt.text)
		w.says(tt.want)
	}
	w.arrives("agent1", "hello")
	w.wire.Text("stop it all")
	w.arrives(agent.Root, "stop it all")
}

func TestForeign(t *testing.T) {
	w := newWorld(t, nil)
	group, _ := chat.KeyOf("iMessage;+;chat123")
	friend, _ := chat.KeyOf("iMessage;-;+15550199")
	w.wire.Put(
		chat.Message{Text: "in a group", Chat: group},
		chat.Message{Text: "from a friend", Chat: friend, Handle: "+15550199"},
		chat.Message{Text: "to a friend", Chat: friend, FromMe: true},
		chat.Message{Text: "yes kxqvd", Service: chat.ServiceSMS},
		chat.Message{Text: "by rcs", Service: chat.ServiceRCS},
		chat.Message{Text: "another in my chat", Handle: "+15550199"},
		chat.Message{Text: "renamed", Kind: chat.Event},
		chat.Message{Text: "[agent0] done", FromMe: true},
		chat.Message{Text: " [netsky] alert: restarted"},
		chat.Message{Text: "last"},
	)
	w.arrives(agent.Root, "last")
	testworld.Len(t, w.inbox(agent.Root), 1, "taken")
	offered := ""
	testworld.WaitOr(t, func() bool {
		w.gate.Mu.Lock()
		defer w.gate.Mu.Unlock()
		offered = strings.Join(w.gate.Offered, ", ")
		return offered == "+15550199 from a friend, +15550199 another in my chat"
	}, func() string { return "offered for pairing: " + offered })
	s, err := phone.Load(w.home)
	if err != nil || s.Ignored["group"] != 1 || s.Ignored["stranger"] != 3 || s.Ignored["service"] != 2 {
		t.Errorf("ignored %v, %v", s.Ignored, err)
	}
}

func TestOld(t *testing.T) {
	w := newWorld(t, nil)
	now := time.Now()
	for range 90 {
		w.wire.Put(chat.Message{Text: "of last year", At: now.AddDate(-1, 0, 0)})
	}
	w.wire.Put(chat.Message{Text: "of this morning", At: now.Add(-3 * time.Hour)}, chat.Message{Text: "now"})
	w.arrives(agent.Root, "now")
	testworld.Len(t, w.inbox(agent.Root), 1, "taken")
	testworld.Contains(t, w.says("too late"), "A message of yours", "said")
}
