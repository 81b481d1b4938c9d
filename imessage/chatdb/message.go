package chatdb

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsky/phone/chat"
)

// message makes a row into what the bridge sees.
func (v *view) message(r *row) (chat.Message, error) {
	m := chat.Message{
		GUID: r.guid, FromMe: r.fromMe, Service: chat.ServiceName(r.service),
		Kind: chat.Text, At: timeOf(r.date), About: r.thread,
	}
	if len(r.chats) > 0 {
		m.Chat = r.chats[0].Chat
		if m.Service == "" {
			m.Service = chat.ServiceName(r.chats[0].service)
		}
	}
	if !r.fromMe {
		var err error
		if m.Handle, err = v.handle(r.handle); err != nil {
			return m, err
		}
	}
	switch {
	case r.item == 0 && 2000 <= r.aboutType && r.aboutType < 4000:
		m.Kind, m.About = chat.Reaction, target(r.about)
		m.Reaction, m.Removed = reactionOf(r.aboutType, r.emoji)
		return m, nil
	case !r.message(), r.automatic:
		m.Kind, m.About = chat.Event, target(r.about)
		return m, nil
	}
	files, err := v.attachments(r.id)
	if err != nil {
		return m, err
	}
	if r.balloon != "" { // what the app itself has stored, such as the picture of a link's preview
		files = slices.DeleteFunc(files, func(a chat.Attachment) bool { return strings.HasSuffix(a.Name, ".pluginPayloadAttachment") })
	}
	m.Attachments = files
	if m.Text, m.Unreadable = v.words(r); m.Unreadable == "" && r.subject != "" {
		m.Text = strings.TrimSpace(r.subject + "\n" + m.Text)
	}
	if m.After, err = v.beforeLink(r); err == nil {
		m.More, err = v.hasLink(r)
	}
	if err != nil {
		return m, err
	}
	if m.Text == "" && r.retracted && len(files) == 0 {
		m.Kind, m.Unreadable = chat.Event, ""
	} else if m.Text == "" && m.Unreadable == "" && len(files) == 0 {
		m.Unreadable = "the message has no text"
		if r.balloon == linkBalloon {
			m.Unreadable = "the message is a link without its address"
		} else if r.balloon != "" {
			m.Unreadable = "the message is from an app in Messages (" + r.balloon + ")"
		} else if r.marked {
			m.Unreadable = "the message has an attachment that is not stored here"
		}
	}
	return m, nil
}

// words returns a row's text, or why it can't be read.
func (v *view) words(r *row) (text, unreadable string) {
	switch {
	case r.long > 0:
		return "", fmt.Sprintf("the message has %d bytes; at most %d are read", r.long, maxBody)
	case r.text != "":
		return strings.ToValidUTF8(r.text, "\ufffd"), ""
	case len(r.body) == 0:
		return "", ""
	}
	text, err := v.o.Decode(r.body)
	if err != nil {
		return "", fmt.Sprintf("the text can't be decoded: %v", err)
	}
	return plainText(text), ""
}

// target returns the message that "p:0/GUID" or "bp:GUID" means.
func target(about string) string {
	if rest, ok := strings.CutPrefix(about, "bp:"); ok {
		return rest
	}
	if strings.HasPrefix(about, "p:") {
		if _, rest, ok := strings.Cut(about, "/"); ok {
			return rest
		}
	}
	return about
}

// reactionOf returns what a tapback says. 2000 and up add one, 3000 and up take it back.
func reactionOf(kind int64, emoji string) (reaction string, removed bool) {
	removed = kind >= 3000
	switch kind % 1000 {
	case 1:
		return chat.Like, removed
	case 2:
		return chat.Dislike, removed
	case 6:
		switch r := []rune(emoji); {
		case len(r) == 0:
		case r[0] == '👍' && plain(r[1:]):
			return chat.Like, removed
		case r[0] == '👎' && plain(r[1:]):
			return chat.Dislike, removed
		}
	}
	return chat.OtherReaction, removed
}

// plain reports whether what follows an emoji changes only how it looks.
func plain(rest []rune) bool {
	for _, r := range rest {
		if r != 0xfe0f && (r < 0x1f3fb || r > 0x1f3ff) {
			return false
		}
	}
	return true
}

// maxAttachments is how many attachments of one message are listed.
const maxAttachments = 100

func (v *view) attachments(id int64) (list []chat.Attachment, err error) {
	if !v.schema.has("attachment", "guid") || !v.schema.has("message_attachment_join", "message_id attachment_id") {
		return nil, nil
	}
	col := func(name, otherwise string) string {
		return "coalesce(" + v.schema.column("attachment", name, otherwise) + ", " + otherwise + ")"
	}
	query := "SELECT attachment.guid, " + strings.Join([]string{
		col("transfer_name", "''"), col("mime_type", "''"), "CAST(" + col("total_bytes", "-1") + " AS INTEGER)", "CAST(" + col("transfer_state", "5") + " AS INTEGER)", col("filename", "''"),
	}, ", ") + ` FROM message_attachment_join AS j JOIN attachment ON attachment.ROWID = j.attachment_id
		WHERE j.message_id = ? AND ` + col("hide_attachment", "0") + " = 0 ORDER BY attachment.ROWID LIMIT ?"
	err = v.all(query, []any{id, maxAttachments}, func(rows *sql.Rows) error {
		var a chat.Attachment
		var state int64
		var path string
		if err := rows.Scan(&a.GUID, &a.Name, &a.MIME, &a.Bytes, &state, &path); err != nil {
			return err
		}
		a.Missing = missing(state, path)
		list = append(list, a)
		return nil
	})
	return list, err
}

// missing returns why an attachment's file is not there, by its transfer_state: 5 is finished, 6
// and 7 are failed. 0 is seen for files that are there.
func missing(state int64, path string) string {
	switch {
	case path == "":
		return "not downloaded"
	case 1 <= state && state <= 4:
		return "still being transferred"
	case state == 6 || state == 7:
		return "its transfer failed"
	}
	return ""
}

// linkBalloon is the app that shows a link's preview.
const linkBalloon = "com.apple.messages.URLBalloonProvider"

const linkWithin = 90 * time.Second

// repeatsLink reports whether the row is the preview of a link that an earlier row has.
func (v *view) repeatsLink(r *row) (bool, error) {
	if r.balloon != linkBalloon {
		return false, nil
	}
	text, _ := v.words(r)
	if text == "" {
		return false, nil
	}
	list, err := v.before(r)
	return slices.ContainsFunc(list, func(b *row) bool {
		same, _ := v.words(b)
		return same == text
	}), err
}

// pairWithin is between words and a link that were sent together, as they were written.
const pairWithin = 3 * time.Second

// beforeLink returns the words that were sent together with a link: Messages makes two rows of them,
// and names the first in the second one's reply_to_guid.
func (v *view) beforeLink(r *row) (guid string, err error) {
	if r.balloon != linkBalloon {
		return "", nil
	}
	list, err := v.before(r)
	if err != nil || len(list) == 0 || list[0].balloon != "" || r.replyTo != list[0].guid || timeOf(r.date).Sub(timeOf(list[0].date)).Abs() > pairWithin {
		return "", err
	}
	if again, err := v.repeatsLink(r); again || err != nil {
		return "", err
	}
	return list[0].guid, nil
}

// hasLink reports whether a link that was sent together with the words in r has arrived behind them.
func (v *view) hasLink(r *row) (has bool, err error) {
	if r.balloon != "" || r.guid == "" || !v.schema.has("message", "reply_to_guid balloon_bundle_id") {
		return false, nil
	}
	var id int64
	found, err := v.one(`SELECT ROWID FROM message WHERE ROWID > ? AND ROWID <= ? AND reply_to_guid = ? AND balloon_bundle_id = ? ORDER BY ROWID LIMIT 1`,
		[]any{r.id, r.id + 1000, r.guid, linkBalloon}, &id)
	if err != nil || !found {
		return false, err
	}
	link, ok, err := v.row(id)
	if err != nil || !ok {
		return false, err
	}
	after, err := v.beforeLink(link)
	return after == r.guid, err
}

// before returns the messages of the same sender that are in the same chat shortly before a row, the
// last first.
func (v *view) before(r *row) (list []*row, err error) {
	if len(r.chats) == 0 {
		return nil, nil
	}
	var ids []int64
	err = v.all(`SELECT m.ROWID FROM message AS m JOIN chat_message_join AS j ON j.message_id = m.ROWID
		WHERE m.ROWID < ? AND m.ROWID >= ? AND j.chat_id = ? AND m.is_from_me = ? AND m.handle_id = ?
		ORDER BY m.ROWID DESC LIMIT 20`,
		[]any{r.id, r.id - 1000, r.chats[0].id, r.fromMe, r.handle}, func(rows *sql.Rows) error {
			var id int64
			defer func() { ids = append(ids, id) }()
			return rows.Scan(&id)
		})
	for _, id := range ids {
		b, ok, err := v.row(id)
		if err != nil {
			return list, err
		}
		if ok && b.message() && timeOf(r.date).Sub(timeOf(b.date)).Abs() <= linkWithin {
			list = append(list, b)
		}
	}
	return list, err
}

// History returns the last messages of a chat, oldest first, at most limit and at most
// chat.MaxBatch. They are as they stand now: edited ones with their last text, unsent ones are
// left out, as are reactions and events.
func (d *DB) History(ctx context.Context, c chat.Chat, limit int) (list []chat.Message, err error) {
	limit = min(limit, chat.MaxBatch)
	err = d.view(ctx, func(v *view) error {
		list, err = v.history(c.Key, limit)
		return err
	})
	return list, err
}

func (v *view) history(key string, limit int) ([]chat.Message, error) {
	var chats []any
	var all []int64
	err := v.all("SELECT ROWID FROM chat", nil, func(rows *sql.Rows) error {
		var id int64
		defer func() { all = append(all, id) }()
		return rows.Scan(&id)
	})
	if err != nil {
		return nil, err
	}
	for _, id := range all {
		c, ok, err := v.chat(id)
		if err != nil {
			return nil, err
		}
		if ok && c.Key == key && len(chats) < 100 {
			chats = append(chats, id)
		}
	}
	if len(chats) == 0 || limit <= 0 {
		return nil, nil
	}
	query := `SELECT DISTINCT message.ROWID, CAST(coalesce(message.date, 0) AS INTEGER) AS at FROM chat_message_join AS j
		JOIN message ON message.ROWID = j.message_id WHERE j.chat_id IN (?` + strings.Repeat(", ?", len(chats)-1) + `)
		AND coalesce(` + v.schema.column("message", "item_type", "0") + `, 0) = 0
		AND coalesce(` + v.schema.column("message", "associated_message_type", "0") + `, 0) IN (0, 2, 3)
		ORDER BY at DESC, message.ROWID DESC LIMIT ?`
	var ids []int64
	err = v.all(query, append(chats, limit), func(rows *sql.Rows) error {
		var id, at int64
		defer func() { ids = append(ids, id) }()
		return rows.Scan(&id, &at)
	})
	if err != nil {
		return nil, err
	}
	var list []chat.Message
	read := 0
	for _, id := range ids {
		r, ok, err := v.row(id)
		if err != nil {
			return nil, err
		}
		if !ok || read > maxBodies {
			continue
		}
		read += len(r.text) + len(r.body)
		m, err := v.message(r)
		if err != nil {
			return nil, err
		}
		if m.Kind == chat.Text && !r.planned {
			list = append(list, m)
		}
	}
	slices.Reverse(list)
	return list, nil
}
