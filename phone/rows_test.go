package phone_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/phone"
	"netsky/phone/chat"
	"netsky/store"
)

// Where no text of ours can be read back, that is told once, and not answered for ever.
func TestUnreadableEcho(t *testing.T) {
	w := newWorld(t, nil)
	n := 0
	w.wire.Mu.Lock()
	w.wire.OnSend = func(o chat.Outgoing) chat.Receipt {
		n++
		for _, mine := range []bool{true, false} {
			m := echo(o, fmt.Sprint("echo-", n), false)
			if mine {
				m = echo(o, fmt.Sprint("out-", n), true)
			}
			m.Text, m.Unreadable = "", "undecodable message"
			w.wire.Rows = append(w.wire.Rows, m)
		}
		return chat.Receipt{}
	}
	w.wire.Mu.Unlock()
	w.wire.Text("status")
	w.says("2 agents up")
	w.says("could not be read")
	testworld.Wait(t, "the echoes are heard", func() bool { return len(w.heard()) >= 5 && w.done() })
	w.wire.Put(chat.Message{Unreadable: "undecodable message"}) // the owner's own
	testworld.Wait(t, "its echoes are heard", func() bool { return len(w.heard()) >= 8 && w.done() })
	verdicts := map[string]int{}
	for _, h := range w.heard() {
		verdicts[h.Verdict]++
	}
	if verdicts[phone.VerdictEcho] != 5 || verdicts[phone.VerdictUnreadable] != 2 {
		t.Errorf("verdicts %v", verdicts)
	}
}

// A message of the owner's that can't be read is not taken for the echo of what netsky has just said:
// neither where our texts come back, nor where they do not.
func TestUnreadableAfterOurs(t *testing.T) {
	for _, echoes := range []bool{true, false} {
		t.Run(fmt.Sprint("echoes ", echoes), func(t *testing.T) {
			var c clock
			w := newWorld(t, c.of)
			w.wire.Mu.Lock()
			w.wire.OnSend = func(o chat.Outgoing) chat.Receipt {
				if echoes {
					w.wire.Rows = append(w.wire.Rows, echo(o, "echo-"+o.ID, false))
				}
				return chat.Receipt{}
			}
			w.wire.Mu.Unlock()
			for i := range 2 {
				answers := func(part string) (n int) {
					for _, s := range w.wire.Texts() {
						if strings.Contains(s, part) {
							n++
						}
					}
					return n
				}
				w.wire.Put(chat.Message{Text: "status", At: c.now()})
				testworld.Wait(t, "it is answered", func() bool { return answers("2 agents up") == i+1 && w.done() })
				if echoes {
					testworld.Wait(t, "the echo is heard", func() bool { return len(w.heard()) == 2+4*i })
				}
				w.wire.Put(chat.Message{Unreadable: "undecodable message", At: c.now()})
				testworld.Wait(t, "it is told", func() bool { return answers("could not be read") == i+1 })
				if echoes {
					testworld.Wait(t, "its echo is heard", func() bool { return len(w.heard()) == 4+4*i })
				}
				c.set(time.Minute)
			}
		})
	}
}

// Rows that can't be read are not answered without end.
func TestUnreadableWithoutEnd(t *testing.T) {
	w := newWorld(t, nil)
	for i := range 100 {
		w.wire.Put(chat.Message{GUID: fmt.Sprint("bad-", i), Unreadable: "undecodable message"})
	}
	w.says("Too many messages")
	testworld.Wait(t, "all are heard", func() bool { return len(w.heard()) == 100 && w.done() })
	answered := 0
	for _, h := range w.heard() {
		if h.Verdict == phone.VerdictUnreadable || h.Verdict == phone.VerdictBrake {
			answered++
		}
	}
	if answered > 6 {
		t.Errorf("%d were answered", answered)
	}
}

// With an account of netsky's own, nothing that the other side writes is an echo.
func TestPictureAfterAFile(t *testing.T) {
	w := newWorld(t, func(o *phone.Options) { o.SelfChat = false })
	w.mail(store.Message{ID: "a", From: agent.Root, Text: "see", Attachments: []string{"attach/plan.pdf"}, Metadata: forPhone})
	testworld.Wait(t, "the file is sent", func() bool {
		w.wire.Mu.Lock()
		defer w.wire.Mu.Unlock()
		return slices.ContainsFunc(w.wire.Out, func(o chat.Outgoing) bool { return o.File != "" })
	})
	w.wire.Put(chat.Message{Attachments: []chat.Attachment{{GUID: "p", Name: "IMG_1.jpg", Bytes: 10}}})
	w.arrives(agent.Root, "(The owner sent this without words.)")
}

// Our account's own row of a message to oneself may be empty, and come late.
func TestEmptyRowOfAPair(t *testing.T) {
	w := newWorld(t, nil)
	now := time.Now()
	w.wire.Put(chat.Message{Text: "do it", At: now})
	w.arrives(agent.Root, "do it")
	w.stop()
	w.start()
	w.wire.Put(chat.Message{FromMe: true, Unreadable: "the message has no text", At: now.Add(time.Second)}, chat.Message{Text: "status"})
	w.says("2 agents up")
	for _, h := range w.heard() {
		if h.Verdict == phone.VerdictUnreadable {
			t.Errorf("heard %+v", h)
		}
	}
}

// The two rows of a message to oneself may arrive far apart, with another run in between.
func TestPairAcrossRuns(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprint("our own first ", first), func(t *testing.T) {
			w := newWorld(t, nil)
			now := time.Now()
			w.wire.Put(chat.Message{Text: "do it", FromMe: first, At: now})
			w.arrives(agent.Root, "do it")
			w.stop()
			w.start()
			w.wire.Put(chat.Message{Text: "do it", FromMe: !first, At: now.Add(2 * time.Second)}, chat.Message{Text: "last"})
			w.arrives(agent.Root, "last")
			testworld.Equal(t, len(w.inbox(agent.Root)), 2, "were taken")
		})
	}
}

// The two rows of an old message to oneself are one message.
func TestOldPair(t *testing.T) {
	w := newWorld(t, nil)
	old := time.Now().Add(-3 * time.Hour)
	w.wire.Put(chat.Message{Text: "of this morning", FromMe: true, At: old}, chat.Message{Text: "of this morning", At: old})
	testworld.Contains(t, w.says("too late"), "A message of yours", "said")
}

// A message to another address of one's own lies in two chats: sent in the one with that address,
// received in the one with the address that it came from. It is one order, and what netsky sends is
// none there, either.
func TestPairAcrossChats(t *testing.T) {
	const other = "owner@example.org"
	there, _ := chat.KeyOf("iMessage;-;" + other)
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprint("sent first ", first), func(t *testing.T) {
			w := newWorld(t, nil)
			w.gate.Also = other
			now := time.Now()
			rows := []chat.Message{{Text: "do it", FromMe: true, Chat: there, At: now}, {Text: "do it", At: now.Add(time.Second)}}
			if !first {
				slices.Reverse(rows)
			}
			w.wire.Put(rows[0])
			w.arrives(agent.Root, "do it")
			w.wire.Put(rows[1], chat.Message{Text: "last"})
			w.arrives(agent.Root, "last")
			testworld.Equal(t, len(w.inbox(agent.Root)), 2, "were taken")
		})
	}
	w := newWorld(t, nil)
	w.gate.Also = other
	w.mail(store.Message{ID: "a", From: agent.Root, Text: "see", Attachments: []string{"attach/plan.pdf"}, Metadata: forPhone})
	testworld.Wait(t, "the file is sent", func() bool {
		w.wire.Mu.Lock()
		defer w.wire.Mu.Unlock()
		return slices.ContainsFunc(w.wire.Out, func(o chat.Outgoing) bool { return o.File != "" })
	})
	w.wire.Put(chat.Message{Chat: there, Handle: other, Attachments: []chat.Attachment{{GUID: "p", Name: "plan-1.pdf", Bytes: 10}}}, chat.Message{Text: "last"})
	w.arrives(agent.Root, "last")
	testworld.Len(t, w.inbox(agent.Root), 1, "taken")
}
