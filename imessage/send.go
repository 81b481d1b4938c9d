package imessage

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"netsky/imessage/chatdb"
	"netsky/phone/chat"
)

// maxText keeps an argument below what systems allow for one.
const maxText = 100_000

// A target is one way to address a chat.
type target struct{ how, whom string }

// targets returns the ways to address a chat, in the order in which they are tried.
func targets(c chat.Chat) ([]target, error) {
	known, ok := chat.KeyOf(c.GUID)
	if !ok || known.Key != c.Key {
		return nil, fmt.Errorf("chat %q: its guid %q is not a chat's, or another one's", c.Key, c.GUID)
	}
	prefix, rest, _ := strings.Cut(c.GUID, ";")
	list := []target{{"chat", c.GUID}}
	switch {
	case prefix == "any":
		list = append(list, target{"chat", "iMessage;" + rest})
	case strings.EqualFold(prefix, chat.ServiceIMessage):
		list = append(list, target{"chat", "any;" + rest})
	default:
		return list, nil // an SMS chat is not answered by iMessage
	}
	if c.Direct && known.Direct && person(known.Identifier) {
		list = append(list, target{"participant", known.Identifier})
	}
	return list, nil
}

// person reports whether an identifier is somebody's address. Anything else would make a new chat.
func person(id string) bool {
	return strings.Contains(id, "@") || strings.HasPrefix(id, "+") && len(id) > 5
}

// A job is one message on its way.
type job struct {
	id      string
	targets []target
	what    string
	content string
	wanted  chatdb.Wanted
	mark    string // the database's end before it; empty if that can't be read
	blind   string // why not
}

// wanted returns what a message looks like in the database.
func wanted(out chat.Outgoing) chatdb.Wanted {
	w := chatdb.Wanted{Key: out.Chat.Key, Text: clean(out.Text), Taken: out.Taken}
	if out.File != "" {
		w.File = copyName(out.File)
	}
	return w
}

// clean removes what can't be in an argument.
func clean(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\ufffd")
}

func (t *Transport) newJob(out chat.Outgoing) (j job, err error) {
	j = job{id: out.ID, what: "text", content: clean(out.Text), wanted: wanted(out)}
	if j.targets, err = targets(out.Chat); err != nil {
		return j, err
	}
	switch {
	case out.File != "":
		j.what = "file"
	case strings.TrimSpace(j.content) == "":
		return j, errors.New("the message is empty")
	case len(j.content) > maxText:
		return j, fmt.Errorf("the message has %d bytes; at most %d can be sent at once", len(j.content), maxText)
	}
	return j, nil
}

// Send sends a message and looks for it. An error says that nothing was tried.
func (t *Transport) Send(ctx context.Context, out chat.Outgoing) (chat.Receipt, error) {
	j, err := t.newJob(out)
	if err != nil {
		return chat.Receipt{}, err
	}
	free, err := t.take(ctx)
	if err != nil {
		return chat.Receipt{}, err
	}
	defer free()
	t.removeOld()
	if _, err := t.osascript(); err != nil {
		return chat.Receipt{}, err
	}
	if out.File != "" {
		if j.content, err = t.stage(out.File); err != nil {
			return chat.Receipt{}, err
		}
	}
	ctx = context.WithoutCancel(ctx)
	if j.mark, err = t.o.DB.Mark(ctx); err != nil {
		j.blind = err.Error()
	}
	r, err := t.try(ctx, j)
	if out.File != "" && (err != nil || r.Again) { // each try makes a copy, and they go on for a day
		t.unstage(j.content)
	}
	if err == nil && r.State == chat.Unconfirmed {
		t.doubt(out.ID)
	}
	return r, err
}

// try goes through the targets.
func (t *Transport) try(ctx context.Context, j job) (chat.Receipt, error) {
	var e ending
	for i, to := range j.targets {
		var err error
		if e, err = t.run(sendScript, to.how, to.whom, j.what, j.content); err != nil {
			if i == 0 {
				return chat.Receipt{}, err
			}
			break
		}
		if e.ok || !e.meaning().other {
			break
		}
		// It was not sent, says the error; the next target may not send it a second time.
		if r, ok := t.look(ctx, j, 0); ok {
			return r, nil
		}
	}
	m := e.meaning()
	if !e.ok && !m.unknown {
		if r, ok := t.look(ctx, j, 0); ok {
			return r, nil
		}
		return e.failed(), nil
	}
	if r, ok := t.look(ctx, j, t.o.Verify); ok {
		return r, nil
	}
	r := chat.Receipt{State: chat.Unconfirmed, Fact: "no such message was found in Messages' database", Next: m.next}
	if j.blind != "" {
		r.Fact = "Messages' database can't be read, so nobody knows whether it was sent: " + j.blind
	}
	if !e.ok {
		r.Fact = e.fact() + "; " + r.Fact
	}
	return r, nil
}

// lookEvery is the time between two looks for a message.
const lookEvery = 100 * time.Millisecond

// look looks for a message for a time; ok says that it knows what became of it.
func (t *Transport) look(ctx context.Context, j job, during time.Duration) (r chat.Receipt, ok bool) {
	if j.mark == "" {
		return r, false
	}
	end := time.Now().Add(during)
	for {
		f, err := t.o.DB.Sent(ctx, j.mark, j.wanted)
		if err == nil && f.OK {
			return found(f), true
		}
		if time.Now().After(end) {
			// An empty row that still has no chat by now is what is left of it.
			return ghost(), err == nil && f.Ghost && during > 0
		}
		time.Sleep(min(lookEvery, max(time.Until(end), time.Millisecond)))
	}
}

// found is the receipt of a row.
func found(f chatdb.Found) chat.Receipt {
	r := chat.Receipt{State: chat.Sent, GUID: f.GUID}
	if f.Error != 0 {
		r.State, r.Fact = chat.Failed, fmt.Sprintf("Messages could not deliver it (error %d)", f.Error)
		r.Next = "Messages shows a red mark beside it, with which it can be sent again"
	} else if f.Service != chat.ServiceIMessage {
		r.Fact = "sent as " + f.Service
	}
	return r
}

func ghost() chat.Receipt {
	return chat.Receipt{
		State: chat.Failed,
		Fact:  "Messages took the message and lost it: it left an empty row without a chat",
		Next:  "quit Messages and open it again",
	}
}

// maxUnsure is how many unconfirmed sends are remembered. One is forgotten when Find could no
// longer be wrong about it.
const maxUnsure = 1000

// doubt remembers that a message may still go out.
func (t *Transport) doubt(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.o.Now()
	for id, at := range t.unsure {
		if now.Sub(at) > t.o.Orphan || len(t.unsure) >= maxUnsure {
			delete(t.unsure, id)
		}
	}
	t.unsure[id] = now
}

// settled returns how long it may take until a message that is not there will not come.
func (t *Transport) settled(id string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.began
	if at, ok := t.unsure[id]; ok && at.After(last) {
		last = at
	}
	return t.o.Orphan - t.o.Now().Sub(last)
}

// Find looks for a message that may have been sent. If it is not there, Find waits until it can't
// come any more.
func (t *Transport) Find(ctx context.Context, out chat.Outgoing) (chat.Receipt, error) {
	if out.Mark == "" {
		return chat.Receipt{}, chat.ErrCannotLook
	}
	for {
		wait := t.settled(out.ID)
		f, err := t.o.DB.Sent(ctx, out.Mark, wanted(out))
		switch {
		case err != nil:
			return chat.Receipt{}, err
		case f.OK:
			return found(f), nil
		case f.Foreign != "":
			return chat.Receipt{State: chat.Unconfirmed, Fact: "Messages' database was replaced meanwhile: " + f.Foreign}, nil
		case f.More:
			return chat.Receipt{State: chat.Unconfirmed, Fact: "too many messages came since to look through them all"}, nil
		case wait <= 0 && f.Ghost:
			return ghost(), nil
		case wait <= 0:
			return chat.Receipt{State: chat.Failed, Fact: "it is not in Messages' database", Again: true}, nil
		}
		timer := time.NewTimer(min(wait, time.Second))
		select {
		case <-timer.C:
		case <-t.closed:
			timer.Stop()
			return chat.Receipt{}, errClosed
		case <-ctx.Done():
			timer.Stop()
			return chat.Receipt{}, ctx.Err()
		}
	}
}

// copyName is the name of a file's copy, which the other side sees.
func copyName(path string) string {
	name := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '/' || r == ':' || r == 0xfffd {
			return '_'
		}
		return r
	}, filepath.Base(path))
	if name = strings.TrimLeft(name, "."); name == "" {
		name = "file"
	}
	if len(name) > 200 {
		ext := filepath.Ext(name)
		if len(ext) > 20 {
			ext = ""
		}
		name = strings.ToValidUTF8(name[:180], "") + ext
	}
	return name
}
