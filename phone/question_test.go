package phone_test

import (
	"strings"
	"testing"

	"netsky/agent"
	"netsky/attention"
	"netsky/internal/testworld"
	"netsky/phone/chat"
	"netsky/store"
)

func asked(from agent.ID, id, text string) attention.Need {
	return only(attention.Sources{Questions: []attention.Asked{{ID: id, From: from, Text: text}}})
}

// A question is texted once, says how to answer it, and takes words: by a reply to its text, or
// by a message to the agent if it has asked nothing else.
func TestQuestion(t *testing.T) {
	for name, answer := range map[string]func(l later, text string){
		"a reply to the text": func(l later, text string) {
			l.wire.Put(chat.Message{Text: "8080", About: l.guidOf(text), At: l.clock.now()})
		},
		"a message to the agent": func(l later, _ string) { l.wire.Put(chat.Message{Text: "agent2: 8080", At: l.clock.now()}) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLater(t)
			l.mail(store.Message{ID: "m-1", From: "agent2", Kind: "question", RequiresAck: true, Text: "Which port?"}) // a clone's: not forwarded
			n := asked("agent2", "m-1", "Which port?")
			l.stands(n)
			l.after(31e9)
			text := l.says("Which port?")
			if !strings.Contains(text, "reply to this very text, or write: agent2: …") || strings.Contains(text, "yes "+n.Code) || strings.Contains(text, "netsky reply") {
				t.Errorf("the text is %q", text)
			}
			l.wire.Put(chat.Message{Text: "yes " + n.Code, At: l.clock.now()})
			if text := l.says("is a question, which takes words"); strings.Contains(text, "this very text") {
				t.Errorf("a reply to %q answers nothing", text) // it shows no question
			}
			answer(l, "Which port?")
			e := l.arrives("agent2", "8080")
			if e.InReplyTo != "m-1" || e.Kind != "reply" || e.From != agent.Owner {
				t.Errorf("the answer is %+v", e)
			}
			l.texted("Which port?", map[bool]int{true: 1, false: 2}[name == "a reply to the text"]) // the other way says what it answers
		})
	}
}

// A question of agent0 is texted as the message that it is, and not once more as an item.
func TestQuestionOnce(t *testing.T) {
	l := newLater(t)
	l.mail(store.Message{ID: "m-1", From: agent.Root, Kind: "question", RequiresAck: true, Text: "Which port?", Metadata: forPhone})
	text := l.says("Which port?")
	if !strings.HasPrefix(text, "[agent0] Which port?\nTo answer, reply to this very text, or write: agent0: …") {
		t.Errorf("the text is %q", text)
	}
	l.stands(asked(agent.Root, "m-1", "Which port?"))
	l.after(31e9)
	l.texted("Which port?", 1)
	l.wire.Put(chat.Message{Text: "8080", About: l.guidOf("Which port?"), At: l.clock.now()})
	if e := l.arrives(agent.Root, "8080"); e.InReplyTo != "m-1" || e.Kind != "reply" {
		t.Errorf("the answer is %+v", e)
	}
}

// A message to an agent answers no question that its chat was not shown.
func TestQuestionNotShown(t *testing.T) {
	l := newLater(t)
	l.mail(store.Message{ID: "m-1", From: "agent2", Kind: "question", RequiresAck: true, Text: "May I delete it?"})
	n := asked("agent2", "m-1", "May I delete it?")
	l.stands(n)
	l.wire.Put(chat.Message{Text: "agent2: who are you?", At: l.clock.now()})
	if e := l.arrives("agent2", "who are you?"); e.InReplyTo != "" || e.Kind != "" {
		t.Errorf("it is %+v, though nothing was asked here", e)
	}
	l.says("this was no answer to it. needs " + n.Code + " shows it")
	l.wire.Put(chat.Message{Text: "needs " + n.Code, At: l.clock.now()})
	l.says("May I delete it?")
	l.wire.Put(chat.Message{Text: "agent2: yes, it is old", At: l.clock.now()})
	if e := l.arrives("agent2", "yes, it is old"); e.InReplyTo != "m-1" || e.Kind != "reply" {
		t.Errorf("the answer is %+v", e)
	}
}

// To an agent that has asked several things, a message is a message.
func TestQuestions(t *testing.T) {
	l := newLater(t)
	l.mail(store.Message{ID: "m-1", From: "agent2", Kind: "question", Text: "Which port?"})
	l.mail(store.Message{ID: "m-2", From: "agent2", Kind: "question", Text: "Which host?"})
	l.stands(asked("agent2", "m-1", "Which port?"), asked("agent2", "m-2", "Which host?"))
	l.wire.Put(chat.Message{Text: "agent2: 8080", At: l.clock.now()})
	testworld.Equal(t, l.arrives("agent2", "8080").InReplyTo, "", "it answers")
	l.says("agent2 has asked several things")
}

// What netsky itself reports is texted if it says that it is for the phone, as it is on no list;
// whatever else it reports is.
func TestNotice(t *testing.T) {
	w := newWorld(t, nil)
	w.mail(store.Message{ID: "a", From: "agent1", Kind: "notice", Via: "code", Text: "agent1 hangs"})
	w.mail(store.Message{ID: "b", From: "agent1", Kind: "notice", Text: "a clone's own", Metadata: forPhone})
	w.mail(store.Message{ID: "gone-1", From: "agent1", Kind: "notice", Via: "code", Text: "All tmux sessions ended at once", Metadata: forPhone})
	w.says("All tmux sessions ended at once")
	w.wire.Text("status")
	w.says("2 agents up")
	testworld.Wait(t, "both", func() bool { return len(w.wire.Texts()) >= 2 })
	testworld.Len(t, w.wire.Texts(), 2, "sent")
}
