package chatdb

import (
	"bytes"
	"cmp"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsky/phone/chat"
)

// maxBody is the longest body that is read.
const maxBody = 4 << 20

// maxSubject is the longest subject that is read.
const maxSubject = 4 << 10

// maxName is the longest guid that is read. The guid of a message is its writer's; in place of one
// that is longer, its row's number is taken.
const maxName = 500

var guidColumn = fmt.Sprintf("CASE WHEN octet_length(message.guid) > %d THEN 'row-' || message.ROWID ELSE coalesce(message.guid, '') END", maxName)

// A row is one of table message, with the chats that it is in.
type row struct {
	id      int64
	guid    string
	text    string // without placeholders for attachments
	body    []byte // the attributedBody, if it is needed
	long    int64  // how long the text or the body is, if it was too long to be read
	marked  bool   // the text has a placeholder for an attachment, or the row says that it has one
	date    int64
	fromMe  bool
	handle  int64
	service string
	failed  int64 // the error column

	item      int64  // 0: a message
	about     string // the message that it belongs to
	aboutType int64
	emoji     string
	balloon   string
	summary   []byte
	retracted bool
	planned   bool // it is to be sent later
	automatic bool // a phone wrote it by itself, while its owner drives
	subject   string
	thread    string
	replyTo   string // the message that it follows

	chats []chatRow
}

// A chatRow is a row of the table chat.
type chatRow struct {
	id      int64
	service string
	chat.Chat
}

// columns lists what is read of a row of table message, in the order of scanRow.
func (s schema) columns() string {
	col := func(name, otherwise string) string { return s.column("message", name, otherwise) }
	text, body := "message.text", col("attributedBody", "NULL")
	short := func(c string, limit int) string {
		return fmt.Sprintf("CASE WHEN octet_length(%s) <= %d THEN %s END", c, limit, c)
	}
	// What names another row is as long as its writer likes; a name that is too long names none.
	named := func(c string) string { return "coalesce(" + short(c, maxName) + ", '')" }
	list := []string{
		"message.ROWID", guidColumn, short(text, maxBody), "coalesce(octet_length(" + text + "), 0)",
		short(body, maxBody), "coalesce(octet_length(" + body + "), 0)",
		number("message.date"), "coalesce(message.is_from_me, 0) <> 0", number("message.handle_id"), named("message.service"),
	}
	for _, name := range []string{"error", "cache_has_attachments", "item_type", "associated_message_type", "date_retracted", "schedule_type", "schedule_state", "is_auto_reply"} {
		list = append(list, number(col(name, "0")))
	}
	for _, column := range []string{"associated_message_guid", "associated_message_emoji", "balloon_bundle_id", "thread_originator_guid", "reply_to_guid"} {
		list = append(list, named(col(column, "''")))
	}
	list = append(list, "coalesce("+short(col("subject", "''"), maxSubject)+", '')")
	list = append(list, short(col("message_summary_info", "NULL"), 64<<10))
	return strings.Join(list, ", ")
}

// number is a column as an integer, whatever was stored in it.
func number(column string) string { return "CAST(coalesce(" + column + ", 0) AS INTEGER)" }

// row reads the row of that number.
func (v *view) row(id int64) (*row, bool, error) {
	r := &row{}
	var text, body []byte
	var textLen, bodyLen, hasFiles, retracted, schedule, stage, automatic int64
	ok, err := v.one("SELECT "+v.schema.columns()+" FROM message WHERE ROWID = ?", []any{id},
		&r.id, &r.guid, &text, &textLen, &body, &bodyLen, &r.date, &r.fromMe, &r.handle, &r.service,
		&r.failed, &hasFiles, &r.item, &r.aboutType, &retracted, &schedule, &stage, &automatic, &r.about, &r.emoji, &r.balloon, &r.thread, &r.replyTo, &r.subject, &r.summary)
	if err != nil || !ok {
		return nil, false, err
	}
	r.retracted = retracted != 0 || bytes.Contains(r.summary, retractedKey)
	r.planned = schedule == sendLater && stage == stagePlanned
	r.automatic = automatic != 0
	r.text, r.subject = plainText(string(text)), plainText(r.subject)
	r.marked = hasFiles != 0 || bytes.Contains(text, []byte(placeholder))
	switch {
	case textLen > maxBody:
		r.long = textLen
	case r.text != "":
	case bodyLen > maxBody:
		r.long = bodyLen
	default:
		r.body = body
	}
	if r.chats, err = v.chatsOf(id); err != nil {
		return nil, false, err
	}
	return r, true, nil
}

// What schedule_type and schedule_state are of a message that its writer has planned with Send Later.
const (
	sendLater    = 2
	stagePlanned = 1
)

// placeholder stands in a text where an attachment is shown.
const placeholder = "\ufffc"

// plainText returns what a text says; of one in which every character was lost, nothing.
func plainText(s string) string {
	s = strings.TrimSpace(strings.ReplaceAll(s, placeholder, ""))
	if strings.Trim(s, "\ufffd \t\r\n") == "" {
		return ""
	}
	return s
}

// retractedKey is the key "rp", the parts that were unsent, as a string of a binary property list.
var retractedKey = []byte("\x52rp")

// message reports whether the row is somebody's message, rather than a reaction or an event.
func (r *row) message() bool {
	return r.item == 0 && (r.aboutType == 0 || r.aboutType == 2 || r.aboutType == 3)
}

// empty reports whether a message has no content yet.
func (r *row) empty() bool {
	return r.message() && r.text == "" && len(r.body) == 0 && r.long == 0 && r.subject == "" && !r.retracted && (r.balloon == "" && !r.marked || r.balloon == linkBalloon)
}

// chatsOf returns the chats that a row is in, in the order in which one is chosen.
func (v *view) chatsOf(id int64) (list []chatRow, err error) {
	var ids []int64
	err = v.all("SELECT chat_id FROM chat_message_join WHERE message_id = ? ORDER BY chat_id LIMIT 16", []any{id},
		func(rows *sql.Rows) error {
			var id int64
			defer func() { ids = append(ids, id) }()
			return rows.Scan(&id)
		})
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		c, ok, err := v.chat(id)
		if err != nil {
			return nil, err
		}
		if ok {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b chatRow) int {
		if a.Direct != b.Direct {
			if b.Direct {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.id, b.id)
	})
	return list, nil
}

// chat.style, which is the separator in the guid too.
const styleDirect = '-'

func (v *view) chat(id int64) (c chatRow, ok bool, err error) {
	if c, ok := v.chats[id]; ok {
		return c, true, nil
	}
	var guid, identifier string
	var style int64
	query := fmt.Sprintf("SELECT coalesce(guid, ''), CAST(coalesce(style, 0) AS INTEGER), %s, %s FROM chat WHERE ROWID = ?",
		"coalesce("+v.schema.column("chat", "chat_identifier", "''")+", '')",
		"coalesce("+v.schema.column("chat", "service_name", "''")+", '')")
	ok, err = v.one(query, []any{id}, &guid, &style, &identifier, &c.service)
	if err != nil || !ok {
		return c, false, err
	}
	known := false
	if c.Chat, known = chat.KeyOf(guid); !known {
		// "chat1234", without a service: a group, or something new. It is not direct.
		name := guid
		if name == "" {
			name = identifier
		}
		c.Chat = chat.Chat{Key: "+;" + name, Identifier: name, GUID: guid}
	}
	c.id, c.Direct = id, c.Direct && style == styleDirect
	if prefix, _, found := strings.Cut(guid, ";"); c.service == "" && found && prefix != "any" {
		c.service = prefix
	}
	v.chats[id] = c
	return c, true, nil
}

func (v *view) handle(id int64) (string, error) {
	if id == 0 {
		return "", nil
	}
	if h, ok := v.handles[id]; ok {
		return h, nil
	}
	var h string
	if _, err := v.one("SELECT coalesce(id, '') FROM handle WHERE ROWID = ?", []any{id}, &h); err != nil {
		return "", err
	}
	h = chat.Handle(h)
	v.handles[id] = h
	return h, nil
}

// timeOf returns the time of a date column: nanoseconds since 2001, or seconds in old rows.
func timeOf(date int64) time.Time {
	const epoch = 978307200
	switch {
	case date == 0:
		return time.Time{}
	case -1e12 < date && date < 1e12:
		return time.Unix(epoch+date, 0)
	}
	return time.Unix(epoch+date/1e9, date%1e9)
}
