package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"netsky/internal/proc"
	"netsky/phone/chat"
)

// Telegram's limits.
const (
	maxText   = 4096     // UTF-16 units
	maxChoice = 64       // bytes of what a button returns
	maxUpload = 50 << 20 // bytes of a file that a bot sends
)

const (
	sendLimit = 30 * time.Second
	slowest   = 128 << 10 // bytes a second that an upload must make beyond that
)

// Send sends a text or a file. It runs to its end whatever becomes of ctx.
func (t *Transport) Send(ctx context.Context, out chat.Outgoing) (chat.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return chat.Receipt{}, err
	}
	tok, err := t.token()
	if err != nil {
		return chat.Receipt{}, degrade(err)
	}
	to, err := placeOf(out.Chat)
	if err != nil {
		return chat.Receipt{State: chat.Failed, Fact: err.Error()}, nil
	}
	var sent ref
	err = t.send(context.WithoutCancel(ctx), tok, to, out, &sent)
	if f := new(failure); to.topic != 0 && errors.As(err, &f) && f.code == http.StatusBadRequest && strings.Contains(f.text, "thread not found") {
		to.topic = 0 // it was closed: the chat itself is left
		err = t.send(context.WithoutCancel(ctx), tok, to, out, &sent)
	}
	if err != nil {
		return t.receipt(err)
	}
	if sent.ID <= 0 {
		return chat.Receipt{State: chat.Unconfirmed, Fact: "telegram's answer does not say which message it is"}, nil
	}
	return chat.Receipt{State: chat.Sent, GUID: tok.guid(to.room, sent.ID)}, nil
}

func (t *Transport) send(ctx context.Context, tok token, to place, out chat.Outgoing, sent *ref) error {
	if out.File != "" {
		return t.sendFile(ctx, tok, to, out, sent)
	}
	return t.sendText(ctx, tok, to, out, sent)
}

// A place is where a message is sent to: a chat, or one of its topics.
type place struct{ room, topic int64 }

// placeOf returns the place that a chat's GUID names: "42", or "42/7" for a topic.
func placeOf(c chat.Chat) (p place, err error) {
	s := c.GUID
	if s == "" {
		_, s, _ = strings.Cut(c.Key, ";")
	}
	room, topic, has := strings.Cut(s, "/")
	p.room, err = strconv.ParseInt(room, 10, 64)
	if err == nil && has {
		p.topic, err = strconv.ParseInt(topic, 10, 64)
	}
	if err != nil || p.room == 0 || p.String() != s { // not a telephone number either
		return place{}, errors.New("the chat is none of Telegram's: it has no id of theirs")
	}
	return p, nil
}

func (p place) String() string {
	s := strconv.FormatInt(p.room, 10)
	if p.topic != 0 {
		s += "/" + strconv.FormatInt(p.topic, 10)
	}
	return s
}

// unsendable is a message that can never be sent.
type unsendable struct{ error }

func (t *Transport) sendText(ctx context.Context, tok token, to place, out chat.Outgoing, sent *ref) error {
	if strings.TrimSpace(out.Text) == "" {
		return unsendable{errors.New("the text is empty")}
	}
	if !utf8.ValidString(out.Text) {
		return unsendable{errors.New("the text is not valid UTF-8")}
	}
	if n := len(utf16.Encode([]rune(out.Text))); n > maxText {
		return unsendable{fmt.Errorf("the text has %d UTF-16 units; Telegram takes %d", n, maxText)}
	}
	args := map[string]any{
		"chat_id": to.room, "text": out.Text, "link_preview_options": map[string]any{"is_disabled": true},
	}
	if to.topic != 0 {
		args["message_thread_id"] = to.topic
	}
	keys, err := keyboard(out.Choices)
	if err != nil {
		return err
	}
	if keys != nil {
		args["reply_markup"] = keys
	}
	ctx, cancel := context.WithTimeout(ctx, sendLimit)
	defer cancel()
	return t.callWithin(ctx, tok, "sendMessage", args, sent)
}

// keyboard lays out the choices, two in a row. A button returns what stands on it.
func keyboard(choices []string) (map[string]any, error) {
	var rows [][]map[string]string
	for i, c := range choices {
		if c == "" || len(c) > maxChoice || !utf8.ValidString(c) {
			return nil, unsendable{fmt.Errorf("choice %d has %d bytes; Telegram takes 1 to %d", i+1, len(c), maxChoice)}
		}
		if i%2 == 0 {
			rows = append(rows, nil)
		}
		last := len(rows) - 1
		rows[last] = append(rows[last], map[string]string{"text": c, "callback_data": c})
	}
	if rows == nil {
		return nil, nil
	}
	return map[string]any{"inline_keyboard": rows}, nil
}

// ClearChoices implements [phone.Clearer].
func (t *Transport) ClearChoices(ctx context.Context, c chat.Chat, guid string) error {
	tok, err := t.token()
	if err != nil {
		return err
	}
	to, err := placeOf(c)
	if err != nil {
		return err
	}
	var bot, room, message int64
	if n, _ := fmt.Sscanf(guid, "%d:%d:%d", &bot, &room, &message); n != 3 || bot != tok.bot || room != to.room {
		return fmt.Errorf("%q: not a message of this bot's in that chat", guid)
	}
	err = t.call(ctx, tok, "editMessageReplyMarkup", map[string]any{"chat_id": to.room, "message_id": message}, nil)
	f := new(failure)
	if errors.As(err, &f) && f.code == http.StatusBadRequest { // they are gone already, or the whole message is
		return nil
	}
	return err
}

// sendFile sends a file as a document, as it is.
func (t *Transport) sendFile(ctx context.Context, tok token, to place, out chat.Outgoing, sent *ref) error {
	if t.o.Refuse != nil {
		if err := t.o.Refuse(out.File); err != nil {
			return unsendable{err}
		}
	}
	f, size, err := openUpload(out.File)
	if err != nil {
		return unsendable{err}
	}
	defer f.Close()
	keys, err := keyboard(out.Choices)
	if err != nil {
		return err
	}
	var head, tail bytes.Buffer
	form := multipart.NewWriter(&head)
	if err := form.WriteField("chat_id", strconv.FormatInt(to.room, 10)); err != nil {
		return err
	}
	if to.topic != 0 {
		if err := form.WriteField("message_thread_id", strconv.FormatInt(to.topic, 10)); err != nil {
			return err
		}
	}
	if keys != nil {
		data, err := json.Marshal(keys)
		if err == nil {
			err = form.WriteField("reply_markup", string(data))
		}
		if err != nil {
			return err
		}
	}
	if _, err := form.CreatePart(filePart(out.File)); err != nil {
		return err
	}
	fmt.Fprintf(&tail, "\r\n--%s--\r\n", form.Boundary())
	length := int64(head.Len()) + size + int64(tail.Len())
	body := io.MultiReader(&head, &exactly{r: f, left: size}, &tail)

	ctx, cancel := context.WithTimeout(ctx, sendLimit+time.Duration(size/slowest)*time.Second)
	defer cancel()
	return t.post(ctx, tok, "sendDocument", form.FormDataContentType(), body, length, sent)
}

func filePart(file string) textproto.MIMEHeader {
	name := strings.Map(func(r rune) rune {
		if r < ' ' || r == '"' || r == '\\' || r == 0x7f || r == utf8.RuneError {
			return '_'
		}
		return r
	}, filepath.Base(file))
	return textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="document"; filename="` + name + `"`},
		"Content-Type":        {"application/octet-stream"},
	}
}

// openUpload opens a regular file that Telegram takes. The file itself is no link, so that
// what is sent is what was named.
func openUpload(file string) (*os.File, int64, error) {
	fd, err := proc.Open(file, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW)
	if err == unix.ELOOP {
		return nil, 0, fmt.Errorf("%s: is a symbolic link", file)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", file, err)
	}
	f := os.NewFile(uintptr(fd), file)
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s: not a regular file", file)
	case info.Size() == 0:
		err = fmt.Errorf("%s: is empty, which Telegram does not take", file)
	case info.Size() > maxUpload:
		err = fmt.Errorf("%s: has %d bytes; a bot can send 50 MB", file, info.Size())
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// exactly reads a file that must have the size it had.
type exactly struct {
	r    io.Reader
	left int64
}

var errChanged = errors.New("the file changed while it was sent")

func (e *exactly) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > e.left {
		p = p[:e.left]
	}
	n, err := e.r.Read(p)
	e.left -= int64(n)
	if e.left == 0 {
		var more [1]byte
		if k, _ := e.r.Read(more[:]); k > 0 {
			return 0, errChanged
		}
		return n, nil
	}
	if err == io.EOF {
		err = errChanged
	}
	return n, err
}

// receipt says what a failure means for the message.
func (t *Transport) receipt(err error) (chat.Receipt, error) {
	var never unsendable
	if errors.As(err, &never) {
		return chat.Receipt{State: chat.Failed, Fact: never.Error()}, nil
	}
	f := new(failure)
	if !errors.As(err, &f) {
		return chat.Receipt{State: chat.Failed, Fact: err.Error()}, nil
	}
	r := chat.Receipt{State: chat.Failed, Fact: "telegram: " + f.Error()}
	switch {
	case f.code == http.StatusUnauthorized || f.code == http.StatusNotFound:
		return chat.Receipt{}, t.degraded(err) // nobody sends anything with this token
	case f.code == http.StatusTooManyRequests:
		r.Again, r.Wait = true, max(f.wait, time.Second)
	case f.moved != 0:
		r.Fact = fmt.Sprintf("telegram: the group has become another chat, %d", f.moved)
	case 400 <= f.code && f.code < 500:
	case f.came:
		r.State = chat.Unconfirmed
	default:
		r.Again = true
	}
	return r, nil
}
