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
	"netsky/phone/record"
)

func (w *world) taken(want ...string) {
	w.t.Helper()
	var got []string
	testworld.WaitOr(w.t, func() bool {
		w.desk.mu.Lock()
		defer w.desk.mu.Unlock()
		got = slices.Clone(w.desk.took)
		return slices.Equal(got, want)
	}, func() string { return fmt.Sprintf("took effect: %q, want %q; said %q", got, want, w.wire.Texts()) })
}

// guidOf returns the guid of the text that was sent with this in it.
func (w *world) guidOf(part string) string {
	w.t.Helper()
	w.says(part)
	return w.wire.GUIDOf(part)
}

func TestApprovalByText(t *testing.T) {
	w := newWorld(t, nil)
	w.desk.asks("kxqvd", "rm -rf build")
	text := w.says("yes kxqvd or no kxqvd")
	for _, part := range []string{"[netsky] agent1 asks for permission to use Bash:\nrm -rf build", "Otherwise: nothing is run, and agent1 waits."} {
		testworld.Contains(t, text, part, "lacks")
	}
	w.wire.Text("Yes kxqvd")
	w.says("kxqvd: done (true).")
	w.wire.Text("no kxqvd") // the loser, and every other repeat
	w.says("kxqvd is settled: answered true.")
	w.taken("kxqvd true")
}

// A text whose item is settled, wherever that was, loses its buttons.
func TestButtonsEnd(t *testing.T) {
	w := newWorld(t, nil)
	w.desk.asks("kxqvd", "rm -rf build")
	w.desk.asks("abcde", "git push")
	first, second := w.guidOf("or no kxqvd"), w.guidOf("or no abcde")
	bare := func(want ...string) {
		t.Helper()
		testworld.Wait(t, "the buttons end", func() bool {
			w.wire.Mu.Lock()
			defer w.wire.Mu.Unlock()
			return slices.Equal(w.wire.Bare, want)
		})
	}
	w.desk.mu.Lock()
	w.desk.list = w.desk.list[1:] // at the terminal
	w.desk.mu.Unlock()
	bare(first)
	w.wire.Text("no abcde")
	bare(first, second)
	w.taken("abcde false")
}

// Items of other hosts are answered by their codes and by reactions, agents there are written to, shown and stopped; what
// can't be answered from here is shown with the command that reaches it.
func TestElsewhere(t *testing.T) {
	w := newWorld(t, nil)
	asks := func(code, text string, options ...string) attention.Need {
		return attention.Need{
			Code: code + "@build1", Kind: attention.Approval, Agents: []agent.ID{"agent3@build1"}, Title: "asks for permission to use Bash", Text: text, Digest: text, Host: "build1",
			Command: "netsky --on build1 needs " + code, Commands: []attention.Command{{Line: "netsky --on build1 needs " + code}}, Options: options,
		}
	}
	changes := func(list ...attention.Need) {
		w.desk.mu.Lock()
		defer w.desk.mu.Unlock()
		w.desk.list = list
	}
	changes(asks("kxqvd", "make", attention.Allow, attention.Deny), asks("abcde", "make test", attention.Allow, attention.Deny), asks("fghij", "long"))
	w.says("agent3@build1 asks for permission to use Bash:\nlong\nOn the computer: netsky --on build1 needs fghij shows")
	w.wire.Text("yes fghij@build1")
	w.says("fghij@build1 cannot be answered by text. On the computer: netsky --on build1 needs fghij")
	w.says("make\nOtherwise: ")
	shown := w.guidOf("yes abcde@build1 or no abcde@build1")
	w.wire.Text("Yes kxqvd@Build1")
	w.says("kxqvd@build1: done (true).")
	w.taken("kxqvd@build1 true")
	changes(asks("abcde", "make install", attention.Allow, attention.Deny)) // since it was shown
	w.wire.Put(chat.Message{Kind: chat.Reaction, Reaction: chat.Like, About: shown})
	w.says("Nothing was answered: this is what it says now. Read it, then answer again.\nagent3@build1 asks for permission to use Bash:\nmake install")
	w.wire.Put(chat.Message{Kind: chat.Reaction, Reaction: chat.Dislike, About: w.guidOf("make install\nOtherwise: ")})
	w.says("abcde@build1: done (false).")
	w.taken("kxqvd@build1 true", "abcde@build1 false")
	same := asks("mnopq", "make dist", attention.Allow, attention.Deny)
	another := same
	another.Code, another.Host = "mnopq@build2", "build2"
	changes(same, another)
	w.guidOf("no mnopq@build1")
	w.wire.Text("no mnopq")
	w.says("Nothing was done: no item mnopq needs you")
	changes(same)
	w.wire.Text("No mnopq.")
	w.says("mnopq@build1: done (false).")
	w.taken("kxqvd@build1 true", "abcde@build1 false", "mnopq@build1 false")
	w.wire.Text("peek agent3@build1 5")
	w.says("the screen of agent3@build1, 5 lines")
	w.wire.Text("stop 3@Build1")
	w.says("agent3@build1: its turn has ended.")
	testworld.Must(t, w.bus.Link("build1"))
	testworld.Must(t, w.bus.Make("agent3@build1"))
	w.wire.Text("Agent 3@Build1: go on")
	w.arrives("agent3@build1", "go on")
	w.wire.Text("3@build1: and then?")
	w.arrives("agent3@build1", "and then?")
	w.wire.Text("agent3@build2: go on")
	w.says("There is no agent3@build2: your message was not sent.")
}

// What another host changes in what it asks is texted again once it stays, however often that is.
func TestElsewhereChanges(t *testing.T) {
	c := &clock{}
	w := newWorld(t, c.of)
	asks := func(text string) {
		w.desk.mu.Lock()
		defer w.desk.mu.Unlock()
		w.desk.list = []attention.Need{{
			Code: "kxqvd@build1", Kind: attention.Approval, Agents: []agent.ID{"agent3@build1"}, Title: "asks for permission", Text: text, Digest: text, Host: "build1",
			Command: "netsky approve kxqvd@build1", Commands: []attention.Command{{Line: "netsky approve kxqvd@build1"}}, Options: []string{attention.Allow, attention.Deny},
		}}
	}
	asks("make 0")
	w.says("make 0")
	for i := range 5 {
		asks(fmt.Sprintf("make %d", i+1))
		w.desk.mu.Lock()
		looks := w.desk.looks + 3
		w.desk.mu.Unlock()
		testworld.Wait(t, "it was looked at", func() bool {
			w.desk.mu.Lock()
			defer w.desk.mu.Unlock()
			return w.desk.looks >= looks
		})
	}
	n := 0
	for _, text := range w.wire.Texts() {
		if strings.Contains(text, "Otherwise: ") {
			n++
		}
	}
	testworld.Equal(t, n, 1, "texts that show it")
	c.set(time.Minute)
	w.says("make 5\nOtherwise: ")
}

// What is no answer answers nothing.
func TestNoAnswer(t *testing.T) {
	w := newWorld(t, nil)
	w.desk.asks("kxqvd", "rm -rf build")
	guid := w.guidOf("yes kxqvd or no kxqvd")
	friend, _ := chat.KeyOf("iMessage;-;+15550199")
	group, _ := chat.KeyOf("iMessage;+;chat1")
	w.wire.Put(
		chat.Message{Text: "yes abcde"},
		chat.Message{Text: "I would say yes kxqvd to that"},
		chat.Message{Text: "yes kxqvd", Service: chat.ServiceSMS},
		chat.Message{Text: "yes kxqvd", Chat: group},
		chat.Message{Text: "yes kxqvd", Chat: friend, Handle: "+15550199"},
		chat.Message{Text: "[agent0] yes kxqvd"},
		chat.Message{Text: "yes kxqvd", At: time.Now().Add(-time.Hour)},
		chat.Message{Kind: chat.Reaction, Reaction: chat.Like, About: "another"},
		chat.Message{Kind: chat.Reaction, Reaction: chat.OtherReaction, About: guid},
		chat.Message{Kind: chat.Reaction, Reaction: chat.Like, About: guid, Removed: true},
		chat.Message{Kind: chat.Reaction, Reaction: chat.Like, About: guid, Chat: group},
		chat.Message{Kind: chat.Press, Text: "yes abcde", About: guid},
		chat.Message{Text: "yes"},
	)
	if text := w.says("no item abcde needs you"); !strings.Contains(text, "No agent got your message; if it was for one, write: agent0: yes abcde") {
		t.Errorf("%q does not say what became of a message that looks like an answer", text)
	}
	w.arrives(agent.Root, "I would say yes kxqvd to that")
	w.arrives(agent.Root, "yes")
	w.says("kxqvd still waits for your answer")
	w.taken()
}

// A yes without a code answers nothing, and what is said about that names no other item than the
// one that it replies to.
func TestBareYes(t *testing.T) {
	w := newWorld(t, nil)
	w.desk.asks("kxqvd", "make test")
	kxqvd := w.guidOf("or no kxqvd")
	w.desk.asks("abcde", "git push")
	abcde := w.guidOf("or no abcde")
	w.wire.Text("yes")
	w.says("2 items still wait for your yes or no")
	w.wire.Put(chat.Message{Text: "Yes!", About: abcde}) // a reply to its very text
	w.says("abcde: done (true).")
	w.wire.Text("yes")
	w.says("kxqvd still waits for your answer (agent1 asks for permission to use Bash: make test): yes kxqvd or no kxqvd.")
	w.wire.Text("no kxqvd")
	w.taken("abcde true", "kxqvd false")
	w.wire.Put(chat.Message{Text: "yes", About: kxqvd})
	w.says("kxqvd is settled: answered false.")
	w.taken("abcde true", "kxqvd false")
	for _, e := range w.inbox(agent.Root) {
		testworld.Equal(t, e.Text, "yes", "agent0")
	}
}

// A reply to the text of an item that is neither yes nor no answers nothing, and that is said.
func TestReplyThatIsNoAnswer(t *testing.T) {
	for _, text := range []string{"ok", "👍", "ja", "yes please", "agent1: yes"} {
		t.Run(text, func(t *testing.T) {
			w := newWorld(t, nil)
			w.desk.asks("kxqvd", "rm -rf build")
			w.says("or no kxqvd")
			w.wire.Put(chat.Message{Text: text, About: w.guidOf("or no kxqvd")})
			w.says("answered nothing: kxqvd still waits")
			w.taken()
			w.wire.Text("yes kxqvd")
			w.taken("kxqvd true")
		})
	}
}

func TestAnswerByReaction(t *testing.T) {
	w := newWorld(t, nil)
	w.desk.asks("kxqvd", "rm -rf build")
	w.desk.asks("abcde", "git push")
	w.wire.Put(chat.Message{Kind: chat.Reaction, Reaction: chat.Dislike, About: w.guidOf("or no kxqvd")})
	w.taken("kxqvd false")
	w.wire.Put(chat.Message{Kind: chat.Press, Text: "yes abcde", About: w.guidOf("or no abcde")})
	w.taken("kxqvd false", "abcde true")
}

// A yes is to the words that were shown: others are shown first.
func TestAnswerToOtherWords(t *testing.T) {
	w := newWorld(t, nil)
	w.desk.asks("kxqvd", "rm -rf build")
	guid := w.guidOf("rm -rf build")
	w.desk.mu.Lock()
	w.desk.list = nil
	w.desk.mu.Unlock()
	w.desk.asks("kxqvd", "rm -rf /")
	w.wire.Put(chat.Message{Kind: chat.Reaction, Reaction: chat.Like, About: guid}, chat.Message{Text: "yes kxqvd"})
	w.says("rm -rf /")
	testworld.Wait(t, "both are done with", func() bool { return len(w.heard()) == 2 && w.done() })
	w.taken()
	w.wire.Text("yes kxqvd")
	w.taken("kxqvd true")
}

func (w *world) done() bool {
	for _, h := range w.heard() {
		if h.State != "done" {
			return false
		}
	}
	return true
}

// What was shown a day ago is shown again before it can be answered: the owner may have scrolled
// up to it.
func TestAnswerWithinADay(t *testing.T) {
	c := &clock{}
	w := newWorld(t, c.of)
	w.desk.asks("kxqvd", "rm -rf build")
	guid := w.guidOf("or no kxqvd")
	c.set(24*time.Hour + time.Second)
	w.wire.Put(
		chat.Message{Text: "yes kxqvd", At: c.now()},
		chat.Message{Kind: chat.Reaction, Reaction: chat.Like, About: guid, At: c.now()},
	)
	w.says("Nothing was answered: this is what it says now.")
	testworld.Wait(t, "both are done with", func() bool { return len(w.heard()) == 2 && w.done() })
	w.taken()
	w.wire.Put(chat.Message{Text: "yes kxqvd", At: c.now()})
	w.taken("kxqvd true")
}

// Many at once are listed; each is shown in full before it can be answered.
func TestMany(t *testing.T) {
	w := newWorld(t, nil)
	var list []agent.Approval
	for _, code := range []string{"aaaaa", "bbbbb", "ccccc", "ddddd", "eeeee", "fffff", "ggggg"} {
		list = append(list, agent.Approval{Code: code, Text: "command of " + code})
	}
	w.desk.asksAtOnce(list...)
	w.says("needs CODE shows all of one")
	w.wire.Text("needs ggggg")
	w.says("yes ggggg or no ggggg")
	w.wire.Text("yes ggggg")
	w.says("ggggg: done (true).")
}

// What is too long for a phone can't be answered there.
func TestTooLong(t *testing.T) {
	w := newWorld(t, nil)
	w.desk.asks("kxqvd", strings.Repeat("echo word; ", 2000))
	w.says("too long to show")
	w.wire.Text("yes kxqvd")
	testworld.Wait(t, "it is done with", func() bool { return len(w.heard()) == 1 && w.done() })
	w.taken()
}

// A text of several parts has its code at the end, and is answered as a whole.
func TestSeveralParts(t *testing.T) {
	w := newWorld(t, func(o *phone.Options) { o.Pace = phone.Pace{} }) // the one that a phone is given
	w.desk.asks("kxqvd", strings.Repeat("echo word; ", 800))
	if last := w.says("or no kxqvd"); !strings.HasPrefix(last, "[netsky 3/3] ") {
		t.Errorf("the last part is %.40q", last)
	}
	list, err := record.Records{DB: w.db}.SaidSince(t.Context(), "test", mine.Key, time.Now().Add(-time.Hour))
	if err != nil || len(list) != 3 {
		t.Fatalf("%d parts on record: %v", len(list), err)
	}
	for i := 1; i < len(list); i++ {
		if gap := list[i].Began - list[i-1].Began; gap < 1000 {
			t.Errorf("part %d was sent %d ms after the one before", i+1, gap)
		}
	}
	w.wire.Text("yes kxqvd")
	w.taken("kxqvd true")
}
