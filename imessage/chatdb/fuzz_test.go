package chatdb_test

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"
	"unicode/utf8"

	"netsky/imessage/chatdb"
	"netsky/internal/messagesim"
	"netsky/internal/testworld"
	"netsky/phone/chat"
)

// FuzzRow stores what anybody may send, or a newer Messages may write, and reads it: exactly one
// message comes back, and nothing that says more than the row does.
func FuzzRow(f *testing.F) {
	f.Add("hello", []byte(nil), "p:0/that", int64(2001), int64(0), "👍", "iMessage", "iMessage;-;+15550100", "+15550100", "")
	f.Add("", []byte("body:x"), "bp:", int64(3006), int64(1), "", "sms", "any;+;chat1", "", "com.apple.messages.URLBalloonProvider")
	f.Add("\ufffc\xff", []byte{4}, "/", int64(-1), int64(-1), "\xff", "", "chat1", "a@b", "x")
	s := messagesim.Start(f, 26)
	s.Kill()
	w := testworld.Got(sql.Open("sqlite3", "file:"+s.Path+"?_journal_mode=WAL"))(f)
	f.Cleanup(func() { w.Close() })
	clock := newClock()
	db := chatdb.New(chatdb.Options{Path: filepath.Clean(s.Path), Decode: decode, Now: clock.now, Every: time.Microsecond, Wait: time.Microsecond})
	f.Cleanup(func() { db.Close() })
	f.Fuzz(func(t *testing.T, text string, body []byte, about string, kind, item int64, emoji, service, guid, handle, balloon string) {
		b, err := db.Next(t.Context(), "")
		testworld.Must(t, err)
		for _, st := range []struct {
			sql  string
			args []any
		}{
			{"DELETE FROM chat", nil},
			{"DELETE FROM chat_message_join", nil},
			{"INSERT INTO chat (ROWID, guid, style, chat_identifier) VALUES (1, ?, ?, ?)", []any{guid, int(item), handle}},
			{"INSERT OR REPLACE INTO handle (ROWID, id, service) VALUES (1, ?, ?)", []any{handle, service}},
			{`INSERT INTO message (guid, text, attributedBody, associated_message_guid, associated_message_type, item_type, associated_message_emoji, service, handle_id, balloon_bundle_id, date)
				VALUES (hex(randomblob(8)), ?, ?, ?, ?, ?, ?, ?, 1, ?, ?)`, []any{text, body, about, kind, item, emoji, service, balloon, kind}},
			{"INSERT INTO chat_message_join (chat_id, message_id) SELECT 1, max(ROWID) FROM message", nil},
		} {
			testworld.Got(w.Exec(st.sql, st.args...))(t)
		}
		var got []chat.Message
		for range 4 {
			if b, err = db.Next(t.Context(), b.Cursor); err != nil {
				t.Fatal(err)
			}
			got = append(got, b.Messages...)
			clock.advance(11 * time.Second)
		}
		if len(got) != 1 {
			t.Fatalf("%d messages, notes %q", len(got), b.Notes)
		}
		m := got[0]
		switch {
		case m.Chat.Direct && item != '-':
			t.Errorf("a chat of style %d is direct", item)
		case m.Kind == chat.Text && item != 0, m.Kind != chat.Text && m.Text != "":
			t.Errorf("item %d of type %d is a %s with the text %q", item, kind, m.Kind, m.Text)
		case m.Text != "" && m.Unreadable != "", !utf8.ValidString(m.Text):
			t.Errorf("text %q, unreadable %q", m.Text, m.Unreadable)
		case m.Service == chat.ServiceIMessage && m.Service != chat.ServiceName(service) && service != "":
			t.Errorf("service %q is %q", service, m.Service)
		}
	})
}
