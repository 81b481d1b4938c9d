package chatdb

import (
	"context"
	"database/sql"
	"strings"
	"unicode"

	"netsky/phone/chat"
)

// A Wanted is a message that may have been sent.
type Wanted struct {
	Key  string // of the chat
	Text string
	File string // the name of a file that was sent instead
	// Taken reports whether a row is known to be another message's. It may be nil.
	Taken func(guid string) bool
}

// A Found is what the database has of it.
type Found struct {
	// Foreign says why the mark is not of this database, if so; nothing was looked for then.
	Foreign string
	OK      bool // there is such a row; it is described by:
	GUID    string
	Error   int64 // not 0: it was not delivered
	Service string
	// Ghost says that there is no such row, but one of our own account without a text and, so
	// far, without a chat: what Messages leaves when it takes a message and loses it.
	Ghost bool
	// More says that not all rows behind the mark were looked at.
	More bool
}

// maxLook is how many rows behind a mark are looked at.
const maxLook = 2000

// Mark returns the database's end, for Sent.
func (d *DB) Mark(ctx context.Context) (string, error) {
	b, err := d.begin(ctx, "")
	return b.Cursor, err
}

// Sent looks behind a mark for a row of our own account in that chat with the same text, compared
// by its letters and digits, or with the file. A row without an error is preferred.
func (d *DB) Sent(ctx context.Context, after string, w Wanted) (f Found, err error) {
	cur, err := parseCursor(after)
	if err != nil {
		return f, err
	}
	err = d.view(ctx, func(v *view) error {
		f, err = v.sent(cur, w)
		return err
	})
	return f, err
}

func (v *view) sent(cur cursor, w Wanted) (f Found, err error) {
	if f.Foreign, err = v.foreign(cur); err != nil || f.Foreign != "" {
		return f, err
	}
	var ids []int64
	err = v.all("SELECT ROWID FROM message WHERE ROWID > ? ORDER BY ROWID LIMIT ?", []any{cur.Row, maxLook},
		func(rows *sql.Rows) error {
			var id int64
			defer func() { ids = append(ids, id) }()
			return rows.Scan(&id)
		})
	if err != nil {
		return f, err
	}
	f.More = len(ids) == maxLook
	var hollow *row // of our own account in that chat, without a text
	heard := false  // the same text, as if somebody else had written it
	for _, id := range ids {
		r, ok, err := v.row(id)
		if err != nil {
			return f, err
		}
		if !ok || !r.message() {
			continue
		}
		if len(r.chats) == 0 {
			f.Ghost = f.Ghost || r.fromMe && r.empty()
			continue
		}
		if !r.in(w.Key) || r.fromMe && w.Taken != nil && w.Taken(r.guid) {
			continue
		}
		same, err := v.carries(r, w)
		if err != nil {
			return f, err
		}
		switch {
		case same && r.fromMe && (!f.OK || f.Error != 0):
			f.OK, f.GUID, f.Error, f.Service = true, r.guid, r.failed, v.serviceOf(r)
		case same && !r.fromMe:
			heard = true
		case r.fromMe && r.empty() && hollow == nil:
			hollow = r
		}
	}
	if !f.OK && heard && hollow != nil {
		f.OK, f.GUID, f.Error, f.Service = true, hollow.guid, hollow.failed, v.serviceOf(hollow)
	}
	f.Ghost = f.Ghost && !f.OK
	return f, nil
}

// in reports whether a row is in the chat with that key.
func (r *row) in(key string) bool {
	for _, c := range r.chats {
		if c.Key == key {
			return true
		}
	}
	return false
}

func (v *view) serviceOf(r *row) string {
	if r.service == "" && len(r.chats) > 0 {
		return chat.ServiceName(r.chats[0].service)
	}
	return chat.ServiceName(r.service)
}

// carries reports whether a row is the message that is looked for.
func (v *view) carries(r *row, w Wanted) (bool, error) {
	if w.File == "" {
		text, _ := v.words(r)
		return text != "" && essence(text) == essence(w.Text), nil
	}
	files, err := v.attachments(r.id)
	for _, a := range files {
		if a.Name == w.File {
			return true, nil
		}
	}
	return false, err
}

// essence returns a text's letters and digits: Messages straightens quotes and joins spaces. A
// text without any is compared as it is.
func essence(text string) string {
	s := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, text)
	if s == "" {
		return strings.TrimSpace(text)
	}
	return s
}
