package phone_test

import (
	"testing"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/phone/chat"
)

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
