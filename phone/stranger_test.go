package phone_test

import (
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

// What comes close to a command is answered as one.
func TestNearCommands(t *testing.T) {
	w := newWorld(t, nil)
	for _, tt := range []struct{ text, want string }{
		{"/start", "yes CODE, no CODE"}, {"/help", "yes CODE, no CODE"}, {"/status", "2 agents up"},
		{"stop", "Which agent? For example: stop agent1"}, {"Peek", "Which agent? For example: peek agent1"},
		{"/start abc", "yes CODE, no CODE"}, {"/needs@owners_bot", "Nothing needs you."}, {"/stop@owners_bot agent1", "agent1: its turn has ended."}, {"/peek 2 30", "the screen of agent2, 30 lines"},
		{"Interrupt 2", "agent2: its turn has ended."}, {"interrupt", "Which agent? For example: stop agent1"}, {"/no kxqvd", "no item kxqvd needs you"}, {"stop 2", "agent2: its turn has ended."}, {"peek 1 30", "the screen of agent1, 30 lines"}, {"peek infinity", "the screen of agentinfinity, 20 lines"},
	} {
		w.wire.Text(tt.text)
		w.says(tt.want)
	}
	w.wire.Text("/delegate agent1 x")
	w.arrives(agent.Root, "/delegate agent1 x")
	w.wire.Text("/stop@home/agent1")
	w.arrives(agent.Root, "/stop@home/agent1")
}

// While a chat rests, what ends or refuses something is still acted on, and status says that it
// rests.
func TestRestIsNoGag(t *testing.T) {
	w := newWorld(t, nil)
	w.desk.asks("kxqvd", "rm -rf build")
	w.says("or no kxqvd")
	for range 7 {
		w.wire.Text("I am away")
	}
	w.says("Too many messages")
	w.wire.Text("status")
	w.wire.Text("yes kxqvd")
	w.wire.Text("stop agent2")
	w.wire.Text("no kxqvd")
	w.says("agent2: its turn has ended.")
	w.taken("kxqvd false")
	testworld.Equal(t, strings.Count(strings.Join(w.wire.Texts(), "\n"), "2 agents up"), 0, "status was answered in a chat that rests")
	s, err := phone.Load(w.home)
	if lines := strings.Join(s.Lines(time.Now()), "\n"); err != nil || !strings.Contains(lines, "too many messages") {
		t.Errorf("status: %q, %v", lines, err)
	}
}

// An answer to nothing that was shown says that it answered nothing.
func TestNothingAnswered(t *testing.T) {
	w := newWorld(t, nil)
	w.stop() // or a look between two of them shows the first ones by themselves
	for _, code := range []string{"aaaaa", "bbbbb", "ccccc", "ddddd", "eeeee", "fffff"} {
		w.desk.asks(code, "command of "+code)
	}
	w.start()
	w.says("needs CODE shows all of one")
	w.wire.Text("yes fffff")
	if got := w.says("yes fffff or no fffff"); !strings.HasPrefix(got, "[netsky] Nothing was answered") {
		t.Errorf("said %q", got)
	}
	w.taken()
}

// When the transport works again, all that waited goes out, requests for permission first.
func TestReleased(t *testing.T) {
	w := newWorld(t, nil)
	down := true
	w.wire.Mu.Lock()
	w.wire.OnSend = func(chat.Outgoing) chat.Receipt {
		if down {
			return chat.Receipt{State: chat.Failed, Fact: "down", Again: true, Wait: time.Hour}
		}
		return chat.Receipt{}
	}
	w.wire.Mu.Unlock()
	w.mail(store.Message{ID: "a", From: agent.Root, Text: "report", Metadata: forPhone})
	w.mail(store.Message{ID: "b", From: agent.Root, Text: "another", Metadata: forPhone})
	testworld.Wait(t, "both were tried", func() bool {
		list, err := record.Records{DB: w.db}.Unsent(t.Context(), "test")
		return err == nil && len(list) == 2 && list[0].Tries > 0 && list[1].Tries > 0
	})
	w.wire.Mu.Lock()
	down = false
	w.wire.Mu.Unlock()
	w.desk.asks("kxqvd", "rm -rf build")
	w.says("another")
	w.says("report")
}
