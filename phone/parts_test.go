package phone_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/phone"
	"netsky/phone/chat"
)

// What a phone splits is one order: a long text, an album, words with a link. A command behind it stands
// alone, and so does what is a part of nothing.
func TestParts(t *testing.T) {
	w := newWorld(t, nil)
	cut := strings.Repeat("x", 4096)
	w.wire.Put(
		chat.Message{GUID: "1", Text: "agent1: first", More: true}, chat.Message{GUID: "2", Text: cut, After: "1", More: true, Attachments: []chat.Attachment{{GUID: "f", Name: "a.jpg"}}},
		chat.Message{GUID: "3", Text: "third", After: "2"}, chat.Message{GUID: "4", Text: "status", After: "3"}, chat.Message{GUID: "5", Text: "not of it", After: "unknown"},
	)
	w.says("2 agents up")
	if e := w.arrives("agent1", "first\n"+cut+"third"); len(e.Attachments) != 1 {
		t.Errorf("files %q", e.Attachments)
	}
	w.arrives(agent.Root, "not of it")
	w.wire.Put(chat.Message{GUID: "6", Text: "too late", After: "3"})
	w.arrives(agent.Root, "too late\n(This belongs to the owner's message before it.)")
	if n, m := len(w.inbox("agent1")), len(w.inbox(agent.Root)); n != 1 || m != 2 {
		t.Errorf("%d and %d messages", n, m)
	}
}

// Only what is known not to be whole waits for more: with a clock that does not move, anything else is
// sent on, and its later part is an order of its own.
func TestPartsKeepNothingBack(t *testing.T) {
	now := time.Now()
	w := newWorld(t, func(o *phone.Options) { o.Now = func() time.Time { return now } })
	w.wire.Put(chat.Message{GUID: "1", Text: "plain", At: now}, chat.Message{GUID: "2", Text: strings.Repeat("long ", 1000), At: now})
	w.arrives(agent.Root, "plain")
	w.arrives(agent.Root, strings.TrimSpace(strings.Repeat("long ", 1000)))
	w.wire.Put(chat.Message{GUID: "3", Text: "not whole", More: true, At: now})
	testworld.Wait(t, "it is heard", func() bool { return len(w.heard()) == 3 })
	w.wire.Put(chat.Message{GUID: "4", Text: "status", At: now})
	w.says("2 agents up")
	testworld.Equal(t, len(w.inbox(agent.Root)), 2, "were sent on")
}

// A picture that few programs can read is converted, if something does that; else who sent it and the
// agent are told so.
func TestHEIC(t *testing.T) {
	w := newWorld(t, func(o *phone.Options) {
		o.Convert = func(_ context.Context, picture []byte) ([]byte, error) {
			if bytes.Contains(picture, []byte("IMG_3")) {
				return nil, errors.New("no program")
			}
			return []byte("JPEG"), nil
		}
	})
	w.wire.Put(chat.Message{Text: "converted", Attachments: []chat.Attachment{{GUID: "a", Name: "IMG_1.HEIC", Bytes: 3}, {GUID: "b", Name: "IMG_2.png", Bytes: 3}}})
	e := w.arrives(agent.Root, "converted")
	if len(e.Attachments) != 2 || !strings.HasSuffix(e.Attachments[0], "-1.jpg") || !strings.HasSuffix(e.Attachments[1], "-2.png") {
		t.Fatalf("files %q", e.Attachments)
	}
	if data, err := os.ReadFile(w.home.Path(home.Mailbox(agent.Root), e.Attachments[0])); err != nil || !bytes.Equal(data, []byte("JPEG")) {
		t.Errorf("%q, %v", data, err)
	}
	w.wire.Put(chat.Message{Text: "as it is", Attachments: []chat.Attachment{{GUID: "c", Name: "IMG_3.heic", Bytes: 4}}})
	const note = "IMG_3.heic: passed on as it is, in HEIC, which many programs cannot read; nothing here could convert it."
	if e := w.arrives(agent.Root, "as it is\n("+note+")"); len(e.Attachments) != 1 || !strings.HasSuffix(e.Attachments[0], ".heic") {
		t.Errorf("files %q", e.Attachments)
	}
	w.says(note)
}

// A file that comes slowly keeps back the messages behind it, whose order stays, but no command.
func TestSlowFile(t *testing.T) {
	w := newWorld(t, nil)
	stuck := make(chan struct{})
	w.wire.Mu.Lock()
	w.wire.Stuck = stuck
	w.wire.Mu.Unlock()
	w.wire.Put(chat.Message{Text: "look", Attachments: []chat.Attachment{{GUID: "f", Name: "f.png", Bytes: 3}}})
	w.wire.Text("and then this")
	w.wire.Text("stop agent2")
	testworld.Wait(t, "the turn has ended", func() bool {
		w.desk.mu.Lock()
		defer w.desk.mu.Unlock()
		return len(w.desk.stopped) == 1
	})
	testworld.Equal(t, len(w.inbox(agent.Root)), 0, "messages went before the file")
	close(stuck)
	w.arrives(agent.Root, "and then this")
	if list := w.inbox(agent.Root); len(list) != 2 || list[0].Text != "look" || len(list[0].Attachments) != 1 {
		t.Errorf("%+v", list)
	}
}
