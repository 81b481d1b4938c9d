package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"netsky/phone/chat"
)

// What we read of the API's types. What is not named here is ignored.
type (
	update struct {
		Message  *message  `json:"message"`
		Press    *press    `json:"callback_query"`
		Reaction *reaction `json:"message_reaction"`
	}
	user struct {
		ID int64 `json:"id"`
	}
	room struct {
		ID   int64  `json:"id"`
		Type string `json:"type"`
	}
	message struct {
		ID      int64  `json:"message_id"`
		From    *user  `json:"from"`
		As      *room  `json:"sender_chat"` // somebody writes in its name; who is not known
		Chat    room   `json:"chat"`
		Date    int64  `json:"date"`
		Text    string `json:"text"`
		Caption string `json:"caption"`
		Album   string `json:"media_group_id"`
		// Either says that the words are somebody else's: the second by servers before version 7.
		Origin    json.RawMessage `json:"forward_origin"`
		Forwarded int64           `json:"forward_date"`
		Bot       *user           `json:"via_bot"` // wrote the words, which the owner only chose
		ReplyTo   *ref            `json:"reply_to_message"`
		Photo     []media         `json:"photo"` // one picture in several sizes
		Document  *media          `json:"document"`
		Voice     *media          `json:"voice"`
		Audio     *media          `json:"audio"`
		Video     *media          `json:"video"`
		Note      *media          `json:"video_note"`
		Animation *media          `json:"animation"` // is a document too
		Topic     int64           `json:"message_thread_id"`
		InTopic   bool            `json:"is_topic_message"` // else a thread of replies
		content
	}
	ref struct {
		ID int64 `json:"message_id"`
	}
	media struct {
		ID     string `json:"file_id"`
		Name   string `json:"file_name"`
		MIME   string `json:"mime_type"`
		Size   *int64 `json:"file_size"`
		Width  int64  `json:"width"`
		Height int64  `json:"height"`
	}
	press struct {
		ID      string   `json:"id"`
		From    user     `json:"from"`
		Message *message `json:"message"`
		Data    string   `json:"data"`
	}
	reaction struct {
		Chat    room    `json:"chat"`
		Message int64   `json:"message_id"`
		User    *user   `json:"user"`
		Date    int64   `json:"date"`
		Old     []emoji `json:"old_reaction"`
		New     []emoji `json:"new_reaction"`
	}
	emoji struct {
		Type  string `json:"type"`
		Emoji string `json:"emoji"`
	}
)

// arrived is what one request has brought.
type arrived struct {
	messages []chat.Message
	splits   []split  // what is known of each message besides
	presses  []string // the ids to answer
	notes    []string
	next     int64 // the offset that acknowledges all of it
}

// wanted are the updates that we ask for. Telegram remembers the list.
var wanted = []string{"message", "callback_query", "message_reaction"}

// updates asks for what follows offset, and waits for it.
func (t *Transport) updates(ctx context.Context, tok token, offset int64, wait time.Duration) (arrived, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+callLimit)
	defer cancel()
	args := map[string]any{
		"limit": perCall, "allowed_updates": wanted, "timeout": int64(math.Ceil(wait.Seconds())),
	}
	if offset > 0 {
		args["offset"] = offset
	}
	var list few
	if err := t.callWithin(ctx, tok, "getUpdates", args, &list); err != nil {
		return arrived{}, err
	}
	in, err := read(tok, list, offset)
	t.join(in)
	return in, err
}

// few are the first updates of an answer. What a server sends beyond what it was asked for comes
// again: it is not acknowledged.
type few []json.RawMessage

func (f *few) UnmarshalJSON(data []byte) error {
	*f = nil
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('[') {
		return errors.New("no list of updates")
	}
	for d.More() && len(*f) < perCall {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		*f = append(*f, raw)
	}
	return nil
}

// read takes the updates apart. The ids of updates may begin anew, so none is compared with
// the offset; and they may come in any order, so the highest counts.
func read(tok token, list []json.RawMessage, offset int64) (arrived, error) {
	in := arrived{next: offset}
	known := false
	for i, raw := range list {
		id, ok := updateID(raw)
		switch {
		case ok && known:
			in.next = max(in.next, id+1)
		case ok:
			in.next, known = id+1, true
		case known || offset > 0:
			in.next++ // they follow each other
		case i == len(list)-1:
			return arrived{}, &failure{method: "getUpdates", text: "an update has no number"}
		}
		if !ok {
			in.notes = append(in.notes, "telegram: an update without a number was left out")
			continue
		}
		if err := in.add(tok, id, raw); err != nil {
			in.notes = append(in.notes, fmt.Sprintf("telegram: update %d was left out: %s", id, tok.plain(err.Error())))
		}
	}
	return in, nil
}

// updateID finds the number of an update of which the rest may be anything.
func updateID(raw json.RawMessage) (int64, bool) {
	var u struct {
		ID json.RawMessage `json:"update_id"`
	}
	if json.Unmarshal(raw, &u) != nil {
		return 0, false
	}
	id, err := strconv.ParseInt(strings.Trim(string(u.ID), `"`), 10, 64)
	return id, err == nil && 0 <= id && id < math.MaxInt64-perCall
}

func (in *arrived) add(tok token, id int64, raw json.RawMessage) error {
	var u update
	if err := json.Unmarshal(raw, &u); err != nil {
		return err
	}
	switch {
	case u.Message != nil:
		m, err := tok.message(u.Message)
		if err != nil {
			return err
		}
		in.splits = append(in.splits, split{at: len(in.messages), date: u.Message.Date, album: u.Message.Album})
		in.messages = append(in.messages, m)
	case u.Press != nil:
		if u.Press.ID != "" {
			in.presses = append(in.presses, u.Press.ID)
		}
		m, err := tok.press(u.Press)
		if err != nil {
			return err
		}
		in.messages = append(in.messages, m)
	case u.Reaction != nil:
		list, err := tok.reactions(id, u.Reaction)
		if err != nil {
			return err
		}
		in.messages = append(in.messages, list...)
	}
	return nil
}

// guid names a message. The bot is part of it: with another bot a private chat counts anew.
func (t token) guid(room, message int64) string {
	return fmt.Sprintf("%d:%d:%d", t.bot, room, message)
}

func (r room) chat() (chat.Chat, error) {
	if r.ID == 0 {
		return chat.Chat{}, errors.New("its chat has no id")
	}
	id := strconv.FormatInt(r.ID, 10)
	if r.Type == "private" {
		return chat.Chat{Key: "-;" + id, Identifier: id, GUID: id, Direct: true}, nil
	}
	return chat.Chat{Key: "+;" + id, Identifier: id, GUID: id}, nil
}

// where returns the chat of a message, with the topic in the name by which it is answered.
func (m *message) where() (chat.Chat, error) {
	c, err := m.Chat.chat()
	if err == nil && m.InTopic && m.Topic > 0 {
		c.GUID = place{m.Chat.ID, m.Topic}.String()
	}
	return c, err
}

// handle returns who a user is; empty for nobody, and for the bot itself.
func (t token) handle(u *user) (handle string, self bool) {
	if u == nil || u.ID == 0 {
		return "", false
	}
	if u.ID == t.bot {
		return "", true
	}
	return strconv.FormatInt(u.ID, 10), false
}

func date(seconds int64) time.Time {
	if seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

func (t token) message(in *message) (m chat.Message, err error) {
	m = chat.Message{
		GUID: t.guid(in.Chat.ID, in.ID), Service: chat.ServiceTelegram, Kind: chat.Text,
		At: date(in.Date), Text: withLinks(in.Text, in.Entities), Attachments: in.attachments(),
	}
	if in.ID <= 0 {
		return m, errors.New("the message has no id")
	}
	if m.Chat, err = in.where(); err != nil {
		return m, err
	}
	if in.As == nil {
		m.Handle, m.FromMe = t.handle(in.From)
	}
	if m.Text == "" {
		m.Text = withLinks(in.Caption, in.CaptionEntities)
	}
	if m.Text == "" && len(m.Attachments) == 0 {
		m.Text, m.Unreadable = in.words()
	}
	switch { // somebody else's words are no command, whoever passes them on
	case m.Unreadable != "":
	case in.Forwarded != 0 || len(in.Origin) > 0:
		m.Text = "(forwarded) " + m.Text
	case in.Bot != nil:
		m.Text = "(by another bot) " + m.Text
	}
	if in.ReplyTo != nil && in.ReplyTo.ID > 0 && !(in.InTopic && in.ReplyTo.ID == in.Topic) { // else to the topic itself
		m.About = t.guid(in.Chat.ID, in.ReplyTo.ID)
	}
	if m.Text == "" && m.Unreadable == "" && len(m.Attachments) == 0 {
		m.Kind = chat.Event
	}
	return m, nil
}

// attachments lists the files of a message, each once.
func (m *message) attachments() (list []chat.Attachment) {
	add := func(f *media, name, mime string) {
		if f == nil || f.ID == "" {
			return
		}
		a := chat.Attachment{GUID: f.ID, Name: f.Name, MIME: f.MIME, Bytes: -1}
		if a.Name == "" {
			a.Name = name
		}
		if a.MIME == "" {
			a.MIME = mime
		}
		if f.Size != nil && *f.Size >= 0 {
			a.Bytes = *f.Size
		}
		if a.Bytes > maxFetch {
			a.Missing = "it is larger than 20 MB, which a bot cannot fetch"
		}
		list = append(list, a)
	}
	var largest *media
	for i, p := range m.Photo {
		if p.ID != "" && (largest == nil || p.Width*p.Height > largest.Width*largest.Height) {
			largest = &m.Photo[i]
		}
	}
	add(largest, "photo.jpg", "image/jpeg")
	add(m.Document, "document", "")
	if m.Document == nil {
		add(m.Animation, "animation.mp4", "video/mp4")
	}
	add(m.Video, "video.mp4", "video/mp4")
	add(m.Note, "video.mp4", "video/mp4")
	add(m.Voice, "voice.ogg", "audio/ogg")
	add(m.Audio, "audio", "")
	return list
}

func (t token) press(in *press) (m chat.Message, err error) {
	if in.ID == "" {
		return m, errors.New("the press has no id")
	}
	if in.Message == nil || in.Message.ID <= 0 {
		return m, errors.New("the press does not say on which message")
	}
	m = chat.Message{
		GUID: fmt.Sprintf("%d:press:%s", t.bot, in.ID), Service: chat.ServiceTelegram, Kind: chat.Press,
		Text: in.Data, About: t.guid(in.Message.Chat.ID, in.Message.ID),
	}
	m.Handle, m.FromMe = t.handle(&in.From)
	m.Chat, err = in.Message.where()
	return m, err
}

// reactions returns what changed: what was taken back, then what was added.
func (t token) reactions(update int64, in *reaction) (list []chat.Message, err error) {
	m := chat.Message{
		Service: chat.ServiceTelegram, Kind: chat.Reaction, At: date(in.Date), About: t.guid(in.Chat.ID, in.Message),
	}
	if in.Message <= 0 {
		return nil, errors.New("the reaction does not say to which message")
	}
	if m.Chat, err = in.Chat.chat(); err != nil {
		return nil, err
	}
	m.Handle, m.FromMe = t.handle(in.User)
	before, after := meanings(in.Old), meanings(in.New)
	for _, removed := range []bool{true, false} {
		had, has := before, after
		if !removed {
			had, has = after, before
		}
		for _, what := range []string{chat.Like, chat.Dislike, chat.OtherReaction} {
			if !had[what] || has[what] {
				continue
			}
			m.Reaction, m.Removed = what, removed
			m.GUID = fmt.Sprintf("%s:reaction:%d:%d:%d", m.About, in.Date, update, len(list))
			list = append(list, m)
		}
	}
	return list, nil
}

func meanings(list []emoji) map[string]bool {
	set := make(map[string]bool)
	for _, e := range list {
		switch strings.TrimSuffix(e.Emoji, "\ufe0f") {
		case "👍":
			set[chat.Like] = true
		case "👎":
			set[chat.Dislike] = true
		default:
			set[chat.OtherReaction] = true
		}
	}
	return set
}
