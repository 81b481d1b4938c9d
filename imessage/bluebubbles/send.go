package bluebubbles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"netsky/phone/chat"
)

// A mark is where the message table ended before a send, and when that was.
type mark struct {
	Row int64 `json:"row"`
	At  int64 `json:"at"` // Unix seconds
}

// Mark implements imessage.Transport.
func (t *Transport) Mark(ctx context.Context) (string, error) {
	top, err := t.newest(ctx)
	if err != nil {
		return "", t.degraded(err)
	}
	data, err := json.Marshal(mark{Row: top.ID, At: t.opts.Now().Unix()})
	return string(data), err
}

// How Messages is told to send. The second way needs a Mac without its protection of system files;
// it is the one that macOS 26 leaves to chats of its new kind.
const (
	byScript  = "apple-script"
	byPrivate = "private-api"
)

// anyChat is how macOS 26 names direct chats, whatever service they use.
const anyChat, scriptChat = "any;-;", "iMessage;-;"

// otherName returns a direct chat's name before or since macOS 26; empty if it has none.
func otherName(guid string) string {
	for _, names := range [][2]string{{anyChat, scriptChat}, {scriptChat, anyChat}} {
		if rest, ok := strings.CutPrefix(guid, names[0]); ok {
			return names[1] + rest
		}
	}
	return ""
}

// way returns how a message is sent, and to which names of its chat, in turn.
func (t *Transport) way(ctx context.Context, guid string) (method string, names []string) {
	i := t.info.Load()
	if i == nil {
		if now, err := t.who(ctx); err == nil {
			i = &now
			t.info.Store(i)
		}
	}
	other := otherName(guid)
	switch {
	case i != nil && i.modern() && i.Private && i.Helper:
		if names = []string{guid}; other != "" {
			names = append(names, other)
		}
		return byPrivate, names
	case strings.HasPrefix(guid, anyChat): // "any" is no service to AppleScript
		guid = other
	}
	return byScript, []string{guid}
}

// modern reports whether the Mac has macOS 26 or later.
func (i info) modern() bool {
	major, _, _ := strings.Cut(i.System, ".")
	n, err := strconv.Atoi(major)
	return err == nil && n >= 26
}

// Send implements imessage.Transport.
func (t *Transport) Send(ctx context.Context, out chat.Outgoing) (chat.Receipt, error) {
	if err := sendable(out); err != nil {
		return chat.Receipt{}, err
	}
	if err := ctx.Err(); err != nil {
		return chat.Receipt{}, err
	}
	ctx = context.WithoutCancel(ctx)
	sent, reached, err := t.try(ctx, out)
	var api *apiError
	switch {
	case err == nil && sent != nil && sent.GUID != "":
		return receipt(sent), nil
	case err == nil, errors.Is(err, errNoData):
		err = errors.New("the server does not say which message it sent")
	case errors.As(err, new(unopened)):
		return chat.Receipt{}, errors.Unwrap(err)
	case !reached:
		return chat.Receipt{}, t.degraded(err)
	case errors.As(err, &api) && api.status == http.StatusTooManyRequests:
		return chat.Receipt{State: chat.Failed, Fact: t.redact(err.Error()), Again: true, Wait: api.wait}, nil
	case errors.As(err, &api):
		// The message that Messages could not deliver comes with the failure.
		var r row
		if json.Unmarshal(api.data, &r) == nil && r.GUID != "" && r.Error != 0 {
			return receipt(&r), nil
		}
	}
	return t.afterwards(ctx, out, err), nil
}

// try hands a message to the server, under each name of its chat until it knows one.
func (t *Transport) try(ctx context.Context, out chat.Outgoing) (sent *row, reached bool, err error) {
	method, names := t.way(ctx, out.Chat.GUID)
	for _, name := range names {
		out.Chat.GUID = name
		if out.File == "" {
			sent, reached, err = t.sendText(ctx, out, method)
		} else {
			sent, reached, err = t.sendNamed(ctx, out, method)
		}
		var api *apiError
		if !errors.As(err, &api) || !strings.Contains(strings.ToLower(err.Error()), "does not exist") {
			break
		}
	}
	return sent, reached, err
}

func (t *Transport) sendNamed(ctx context.Context, out chat.Outgoing, method string) (*row, bool, error) {
	f, size, err := t.openFile(out.File)
	if err != nil {
		return nil, false, unopened{err}
	}
	defer f.Close()
	return t.sendFile(ctx, out, method, f, size)
}

// unopened is the error of a file that cannot be sent.
type unopened struct{ error }

func (u unopened) Unwrap() error { return u.error }

// sendable says why a message cannot be sent at all.
func sendable(out chat.Outgoing) error {
	c, ok := chat.KeyOf(out.Chat.GUID)
	switch {
	case !ok:
		// A name without its form would become a new conversation.
		return fmt.Errorf("chat %q: not the guid of a chat", out.Chat.GUID)
	case out.Chat.Key != "" && c.Key != out.Chat.Key:
		return fmt.Errorf("chat %q: not the chat %s", out.Chat.GUID, out.Chat.Key)
	case out.ID == "":
		return errors.New("a message without an id")
	case out.File == "" && strings.Trim(out.Text, "\x00 \t\r\n") == "":
		return errors.New("a message without a text")
	}
	return nil
}

// tempGUID names a message to the server, which refuses a second one while the first is under
// way.
func tempGUID(out chat.Outgoing) string { return "netsky-" + out.ID }

func (t *Transport) sendText(ctx context.Context, out chat.Outgoing, method string) (*row, bool, error) {
	var sent *row
	reached, err := t.call(ctx, t.opts.Sending, jsonRequest("message/text", map[string]string{
		"chatGuid": out.Chat.GUID,
		"tempGuid": tempGUID(out),
		"message":  strings.ReplaceAll(out.Text, "\x00", ""), // no argument of a script can have one
		"method":   method,
	}), &sent)
	return sent, reached, err
}

// afterwards looks for a message whose send ended without a clear word.
func (t *Transport) afterwards(ctx context.Context, out chat.Outgoing, why error) chat.Receipt {
	until := time.Now().Add(t.opts.Look)
	for {
		r, err := t.Find(ctx, out)
		if err == nil && (r.State == chat.Sent || r.GUID != "") {
			return r
		}
		left := time.Until(until)
		if left <= 0 || t.pauseAfter(ctx, min(left, max(t.opts.Look/15, time.Millisecond))) != nil {
			return chat.Receipt{State: chat.Unconfirmed, Fact: t.redact(why.Error())}
		}
	}
}

// pauseAfter waits, but not for the socket.
func (t *Transport) pauseAfter(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.ctx.Done():
		return context.Canceled
	case <-timer.C:
		return nil
	}
}

// Find implements imessage.Transport. It looks for a message of ours in that chat behind the mark,
// with the same text or a file of the same name.
func (t *Transport) Find(ctx context.Context, out chat.Outgoing) (chat.Receipt, error) {
	var m mark
	if err := json.Unmarshal([]byte(out.Mark), &m); err != nil || m.At == 0 {
		return chat.Receipt{}, chat.ErrCannotLook
	}
	var found *row
	err := t.scan(ctx, m.Row, func(list []row) bool {
		for i := range list {
			if list[i].is(out) && (found == nil || found.Error != 0) {
				found = &list[i]
			}
		}
		return found == nil || found.Error != 0
	})
	if err != nil {
		return chat.Receipt{}, t.degraded(err)
	}
	if found != nil {
		return receipt(found), nil
	}
	age := t.opts.Now().Sub(time.Unix(m.At, 0))
	if age < t.opts.Settle {
		return chat.Receipt{State: chat.Unconfirmed, Fact: "the Mac has no such message yet"}, nil
	}
	return chat.Receipt{State: chat.Failed, Again: true,
		Fact: fmt.Sprintf("the Mac has no such message after %s", age.Round(time.Second))}, nil
}

// is reports whether a row is the message that was to be sent.
func (r *row) is(out chat.Outgoing) bool {
	if !r.FromMe || r.unreadable != nil || r.Item != 0 || r.Assoc != 0 || out.Taken != nil && out.Taken(r.GUID) {
		return false
	}
	in := false
	for _, c := range r.Chats {
		one := row{Chats: []chatRow{c}}
		in = in || one.chat().Key == out.Chat.Key
	}
	if !in {
		return false
	}
	if out.File == "" {
		return plain(value(r.Text)) == plain(out.Text)
	}
	for _, f := range r.Files {
		if value(f.Name) == filepath.Base(out.File) {
			return true
		}
	}
	return false
}

// plain returns a text without what the way through Messages may change: blanks, and the
// placeholders of attachments.
func plain(s string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("\ufffc", "", "\x00", "").Replace(s)), " ")
}

// receipt says what a row tells about its message.
func receipt(r *row) chat.Receipt {
	if r.Error != 0 {
		return chat.Receipt{State: chat.Failed, GUID: r.GUID, Fact: fmt.Sprintf("Messages could not deliver it (error %d)", r.Error)}
	}
	return chat.Receipt{State: chat.Sent, GUID: r.GUID}
}
