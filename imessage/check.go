package imessage

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"netsky/phone/chat"
)

// Check finds out what works. It sends nothing, but it asks Messages for the number of its chats,
// for which macOS may open Messages, and may ask the owner for permission.
func (t *Transport) Check(ctx context.Context) []chat.Fact {
	facts := t.o.DB.Facts(ctx)
	facts = append(facts, t.checkScript(ctx)...)
	facts = append(facts, t.checkStaging())
	return append(facts, chat.Fact{
		Name: "sending", State: chat.Unchecked,
		Detail: "not tested: whether a message that is sent arrives, in which of the ways a chat can be addressed, and whether the daemon has the permissions of this terminal",
		Next:   "`netsky imessage send hello` texts you; answer it",
	})
}

func (t *Transport) checkScript(ctx context.Context) []chat.Fact {
	path, err := t.osascript()
	if err != nil {
		return []chat.Fact{
			{Name: "osascript", State: chat.Unchecked, Detail: err.Error(), Next: "run this on the Mac that is signed in to Messages"},
			{Name: "Messages", State: chat.Unchecked, Detail: "not asked: there is no osascript"},
		}
	}
	facts := []chat.Fact{{Name: "osascript", State: chat.OK, Detail: path}}
	free, err := t.take(ctx)
	if err != nil {
		return append(facts, chat.Fact{Name: "Messages", State: chat.Unchecked, Detail: "not asked: " + err.Error()})
	}
	defer free()
	e, err := t.run(countScript)
	switch {
	case err != nil:
		facts = append(facts, chat.Fact{Name: "Messages", State: chat.Bad, Detail: err.Error()})
	case e.ok:
		facts = append(facts, chat.Fact{Name: "Messages", State: chat.OK, Detail: "answers; it has loaded " + lastLine(strings.TrimSpace(e.output)) + " chats"})
	default:
		facts = append(facts, chat.Fact{Name: "Messages", State: chat.Bad, Detail: e.fact(), Next: e.meaning().next})
	}
	return facts
}

func (t *Transport) checkStaging() chat.Fact {
	f := chat.Fact{Name: "files to send", State: chat.OK, Detail: t.staging() + " can be written"}
	root, err := t.stagingRoot(true)
	if err == nil {
		const probe = ".netsky-probe"
		if err = root.WriteFile(probe, nil, 0o600); err == nil {
			err = root.Remove(probe)
		}
		root.Close()
	}
	if errors.Is(err, fs.ErrNotExist) {
		f.State, f.Detail, f.Next = chat.Unchecked, err.Error(), "sign in to Messages on this Mac; it makes the directory"
	} else if err != nil {
		f.State, f.Detail = chat.Bad, err.Error()
		f.Next = "texts can be sent; for files, give netsky the right to write there"
	}
	return f
}
