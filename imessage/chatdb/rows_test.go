package chatdb_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsky/imessage/chatdb"
	"netsky/internal/messagesim"
	"netsky/internal/testworld"
	"netsky/phone/chat"
)

// columns makes a map of pairs.
func columns(pairs ...any) map[string]any {
	m := make(map[string]any)
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}

// about is what a row has that belongs to another one.
func about(kind int, more ...any) map[string]any {
	return columns(append(more, "associated_message_type", kind, "associated_message_guid", "p:0/that")...)
}

func TestKinds(t *testing.T) {
	t.Parallel()
	retracted := append([]byte("bplist00\xd1\x01\x02"), "\x52rp"...)
	for _, tt := range []struct {
		name string
		row  message
		want chat.Message
	}{
		{"balloon 2", message{Text: "a", Columns: about(2)}, chat.Message{Kind: chat.Text, Text: "a"}},
		{"balloon 3", message{Text: "a", Columns: about(3)}, chat.Message{Kind: chat.Text, Text: "a"}},
		{"sticker", message{Columns: about(1000)}, chat.Message{Kind: chat.Event, About: "that"}},
		{"love", message{Text: "Loved “a”", Columns: about(2000)}, chat.Message{Kind: chat.Reaction, About: "that", Reaction: chat.OtherReaction}},
		{"like", message{Text: "Liked “a”", Columns: about(2001)}, chat.Message{Kind: chat.Reaction, About: "that", Reaction: chat.Like}},
		{"dislike", message{Columns: about(2002)}, chat.Message{Kind: chat.Reaction, About: "that", Reaction: chat.Dislike}},
		{"like taken back", message{Columns: about(3001)}, chat.Message{Kind: chat.Reaction, About: "that", Reaction: chat.Like, Removed: true}},
		{"thumb up", message{Columns: about(2006, "associated_message_emoji", "👍")}, chat.Message{Kind: chat.Reaction, About: "that", Reaction: chat.Like}},
		{"dark thumb down", message{Columns: about(2006, "associated_message_emoji", "👎🏿")}, chat.Message{Kind: chat.Reaction, About: "that", Reaction: chat.Dislike}},
		{"other emoji", message{Columns: about(2006, "associated_message_emoji", "🎉")}, chat.Message{Kind: chat.Reaction, About: "that", Reaction: chat.OtherReaction}},
		{"two emoji", message{Columns: about(2006, "associated_message_emoji", "👍👎")}, chat.Message{Kind: chat.Reaction, About: "that", Reaction: chat.OtherReaction}},
		{"sticker tapback", message{Columns: about(2007)}, chat.Message{Kind: chat.Reaction, About: "that", Reaction: chat.OtherReaction}},
		{"tapback on a balloon", message{Columns: columns("associated_message_type", 2001, "associated_message_guid", "bp:that")}, chat.Message{Kind: chat.Reaction, About: "that", Reaction: chat.Like}},
		{"tapback on a bare guid", message{Columns: columns("associated_message_type", 2001, "associated_message_guid", "that")}, chat.Message{Kind: chat.Reaction, About: "that", Reaction: chat.Like}},
		{"poll vote", message{Text: "yes", Columns: about(4000)}, chat.Message{Kind: chat.Event, About: "that"}},
		{"member joined", message{Columns: columns("item_type", 1)}, chat.Message{Kind: chat.Event}},
		{"chat renamed", message{Text: "yes abcde", Columns: columns("item_type", 2, "group_title", "x")}, chat.Message{Kind: chat.Event}},
		{"unsent", message{Columns: columns("date_retracted", 1, "message_summary_info", retracted)}, chat.Message{Kind: chat.Event}},
		{"unsent in part", message{Text: "left", Columns: columns("message_summary_info", retracted)}, chat.Message{Kind: chat.Text, Text: "left"}},
		{"reply", message{Text: "a", Columns: columns("thread_originator_guid", "that", "reply_to_guid", "other")}, chat.Message{Kind: chat.Text, Text: "a", About: "that"}},
		{"damaged body", message{Body: []byte("yes")}, chat.Message{Kind: chat.Text, Unreadable: "the text can't be decoded: no body"}},
		{"text before a damaged body", message{Text: "a", Body: []byte("x")}, chat.Message{Kind: chat.Text, Text: "a"}},
		{"words in the body only", message{Text: "\ufffc", Body: []byte("body:\ufffcwords")}, chat.Message{Kind: chat.Text, Text: "words"}},
		{"huge body", message{Body: make([]byte, 4<<20+1)}, chat.Message{Kind: chat.Text, Unreadable: "the message has 4194305 bytes; at most 4194304 are read"}},
		{"huge text", message{Text: strings.Repeat("é", 2<<20+1)}, chat.Message{Kind: chat.Text, Unreadable: "the message has 4194306 bytes; at most 4194304 are read"}},
		{"text that is no UTF-8", message{Columns: columns("text", []byte("a\xff"))}, chat.Message{Kind: chat.Text, Text: "a\ufffd"}},
		{"odd values", message{Text: "a", Columns: columns("is_from_me", 0, "error", "x", "item_type", 0.0, "date", "soon")}, chat.Message{Kind: chat.Text, Text: "a"}},
		{"seconds", message{Text: "a", Columns: columns("date", 600000000)}, chat.Message{Kind: chat.Text, Text: "a", At: time.Unix(600000000+978307200, 0)}},
		{"service of the chat", message{Text: "a", Chat: "SMS;-;" + friend, Columns: columns("service", nil)}, chat.Message{Kind: chat.Text, Text: "a", Service: chat.ServiceSMS}},
		{"service of the chat's guid", message{Text: "a", Chat: "RCS;-;" + friend, Columns: columns("service", nil)}, chat.Message{Kind: chat.Text, Text: "a", Service: chat.ServiceRCS}},
		{"rcs", message{Text: "a", Service: "rcs"}, chat.Message{Kind: chat.Text, Text: "a", Service: chat.ServiceRCS}},
		{"by satellite", message{Text: "a", Service: "iMessageLite"}, chat.Message{Kind: chat.Text, Text: "a"}},
		{"unknown service", message{Text: "a", Service: "iMessageOther"}, chat.Message{Kind: chat.Text, Text: "a", Service: "iMessageOther"}},
		{"subject", message{Text: "yes abcde", Columns: columns("subject", "About it ")}, chat.Message{Kind: chat.Text, Text: "About it\nyes abcde"}},
		{"subject alone", message{Columns: columns("subject", "About it")}, chat.Message{Kind: chat.Text, Text: "About it"}},
		{"automatic answer", message{Text: "I am driving", Columns: columns("is_auto_reply", 1)}, chat.Message{Kind: chat.Event}},
		{"text lost, but not in the body", message{Text: "\ufffd\ufffd", Body: []byte("body:words")}, chat.Message{Kind: chat.Text, Text: "words"}},
		{"link without its address", message{Columns: columns("balloon_bundle_id", "com.apple.messages.URLBalloonProvider", "cache_has_attachments", 1)},
			chat.Message{Kind: chat.Text, Unreadable: "the message is a link without its address"}},
		{"text lost", message{Text: "\ufffd \ufffd"}, chat.Message{Kind: chat.Text, Unreadable: "the message has no text"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := mustReader(t, 26, nil)
			tt.row.From = friend
			r.sim.Insert(tt.row)
			list := r.after(soon)
			if len(list) == 0 { // it waits for its content
				list = append(r.after(late), r.after(10*time.Second)...)
			}
			if len(list) != 1 {
				t.Fatalf("%d messages, want 1", len(list))
			}
			got, want := list[0], tt.want
			if want.Service == "" {
				want.Service = chat.ServiceIMessage
			}
			if !want.At.IsZero() && !got.At.Equal(want.At) {
				t.Errorf("At = %v, want %v", got.At, want.At)
			}
			if got.Kind != want.Kind || got.Text != want.Text || got.Unreadable != want.Unreadable || got.About != want.About ||
				got.Reaction != want.Reaction || got.Removed != want.Removed || got.Service != want.Service {
				t.Errorf("got %.300q\nwant %.300q", textsOf([]chat.Message{got}), textsOf([]chat.Message{want}))
				t.Errorf("About %q, Removed %v, Service %q; want %q, %v, %q", got.About, got.Removed, got.Service, want.About, want.Removed, want.Service)
			}
		})
	}
}

func TestChats(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		guid string
		want chat.Chat
	}{
		{"iMessage;-;+1 (555) 0101", chat.Chat{Key: "-;+15550101", Identifier: "+15550101", Direct: true}},
		{"any;-;Owner@Example.com", chat.Chat{Key: "-;owner@example.com", Identifier: "owner@example.com", Direct: true}},
		{"any;+;chat99", chat.Chat{Key: "+;chat99", Identifier: "chat99"}},
		{"chat99", chat.Chat{Key: "+;chat99", Identifier: "chat99"}},
	} {
		r := mustReader(t, 26, nil)
		r.sim.Insert(message{From: friend, Text: "a", Chat: tt.guid})
		list := r.after(soon)
		r.want(list, "a")
		tt.want.GUID = tt.guid
		testworld.Equal(t, list[0].Chat, tt.want, "chat %q", tt.guid)
	}
	for _, style := range []any{nil, 0, 43, 99} {
		r := mustReader(t, 15, nil)
		guid := r.sim.Insert(message{From: friend, Text: "a", Join: messagesim.Never})
		r.sim.Join(guid, messagesim.DefaultChat)
		r.sim.Exec("UPDATE chat SET style = ?", style)
		list := r.after(soon)
		r.want(list, "a")
		if list[0].Chat.Direct {
			t.Errorf("a chat of style %v is direct", style)
		}
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	r := mustReader(t, 15, nil)
	at := time.Now().Add(-time.Hour)
	link := map[string]any{"balloon_bundle_id": "com.apple.messages.URLBalloonProvider"}
	add := func(text, from string, after time.Duration, columns map[string]any) {
		r.sim.Insert(message{From: from, Text: text, At: at.Add(after), Columns: columns})
	}
	add("https://example.com", friend, 0, nil)
	add("https://example.com", friend, 80*time.Second, link)
	add("https://example.com", friend, 100*time.Second, link) // within 90 s of the preview
	add("https://example.com", friend, 300*time.Second, link)
	add("https://example.com", "+15550199", 301*time.Second, link)
	add("https://example.com/2", friend, 302*time.Second, link)
	add("https://example.com/2", friend, 303*time.Second, nil) // typed again
	r.want(r.after(soon), "https://example.com", "https://example.com", "https://example.com", "https://example.com/2", "https://example.com/2")
}

// An edit is no new message; the history shows what stands there now.
func TestEditAndUnsend(t *testing.T) {
	t.Parallel()
	r := mustReader(t, 14, nil)
	edited := r.sim.Insert(message{From: friend, Text: "stop agent2"})
	unsent := r.sim.Insert(message{From: friend, Text: "unsent"})
	r.sim.Insert(message{Text: "mine", Chat: "any;-;" + friend})
	r.sim.Insert(message{From: friend, Text: "elsewhere", Chat: "iMessage;+;chat1"})
	r.want(r.after(soon), "stop agent2", "unsent", "mine", "elsewhere")
	r.sim.Set(0, edited, map[string]any{"text": nil, "attributedBody": []byte("body:stop agent3"), "date_edited": 5})
	r.sim.Set(0, unsent, map[string]any{"text": nil, "date_retracted": 5})
	r.want(r.after(late))
	list, err := r.db.History(t.Context(), chat.Chat{Key: "-;" + friend}, 10)
	testworld.Must(t, err)
	r.want(list, "stop agent3", "mine")
	if list, err = r.db.History(t.Context(), chat.Chat{Key: "-;" + friend}, 1); err != nil {
		t.Fatal(err)
	}
	r.want(list, "mine")
	if list, err = r.db.History(t.Context(), chat.Chat{Key: "-;nobody"}, 10); err != nil || len(list) > 0 {
		t.Errorf("an unknown chat: %v, %v", list, err)
	}
}

// The files of a link's preview are Messages' own.
func TestPreview(t *testing.T) {
	t.Parallel()
	r := mustReader(t, 26, nil)
	r.sim.Insert(message{From: friend, Text: "https://a.example", Columns: columns("balloon_bundle_id", "com.apple.messages.URLBalloonProvider"), Files: []messagesim.File{
		{GUID: "a", Name: "0A1B.pluginPayloadAttachment", Path: "~/Library/Messages/Attachments/a", Bytes: 5, State: 5},
		{GUID: "b", Name: "plan.pdf", Path: "~/Library/Messages/Attachments/b", Bytes: 5, State: 5},
	}})
	list := r.after(soon)
	r.want(list, "https://a.example")
	if files := list[0].Attachments; len(files) != 1 || files[0].Name != "plan.pdf" {
		t.Errorf("files %+v", files)
	}
}

func TestAttachments(t *testing.T) {
	inEach(t, func(t *testing.T, p messagesim.Profile) {
		r := mustReader(t, p, nil)
		r.sim.Insert(message{From: friend, Text: "\ufffc", Files: []messagesim.File{
			{GUID: "a", Name: "../evil name.heic", MIME: "image/heic", Path: "~/Library/Messages/Attachments/a/b/x.heic", Bytes: 5, State: 5},
			{GUID: "b", Name: "later.pdf", Bytes: 7},
			{GUID: "c", Name: "half.pdf", Path: "~/Library/Messages/Attachments/c", State: 3},
			{GUID: "d", Name: "x.pluginPayloadAttachment", State: 5, Hidden: true},
		}})
		list := r.after(soon)
		r.want(list, "")
		want := []chat.Attachment{
			{GUID: "a", Name: "../evil name.heic", MIME: "image/heic", Bytes: 5},
			{GUID: "b", Name: "later.pdf", Bytes: 7, Missing: "not downloaded"},
			{GUID: "c", Name: "half.pdf", Missing: "still being transferred"},
		}
		if got := list[0].Attachments; len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
			t.Errorf("attachments %+v\nwant %+v", got, want)
		}
	})
}

func TestOpen(t *testing.T) {
	t.Parallel()
	r := mustReader(t, 15, nil)
	dir := r.db.Attachments()
	outside := filepath.Join(filepath.Dir(dir), "secret")
	for _, f := range []string{filepath.Join(dir, "ok"), outside} {
		testworld.Must(t, os.WriteFile(f, []byte("hello"), 0o600))
	}
	for _, link := range [][2]string{{"ok", "inside"}, {"../secret", "out"}, {outside, "absolute"}, {"..", "up"}} {
		testworld.Must(t, os.Symlink(link[0], filepath.Join(dir, link[1])))
	}
	testworld.Must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	const tilde = "~/Library/Messages/Attachments/"
	for i, tt := range []struct {
		path  string
		limit int64
		want  string
	}{
		{tilde + "ok", 5, ""},
		{dir + "/ok", 5, ""},
		{tilde + "inside", 5, ""},
		{tilde + "ok", 4, "5 bytes; at most 4"},
		{tilde + "../secret", 9, "not in Messages' directory"},
		{tilde + "x/../../secret", 9, "not in Messages' directory"},
		{outside, 9, "not in Messages' directory"},
		{"~/.ssh/id_rsa", 9, "not in Messages' directory"},
		{"", 9, "not downloaded"},
		{tilde + "out", 9, "escapes"},
		{tilde + "absolute", 9, "escapes"},
		{tilde + "up/secret", 9, "escapes"},
		{tilde + "pipe", 9, "not a regular file"},
		{tilde, 9, ""},
		{tilde + "gone", 9, "no such file"},
	} {
		guid := "g" + string(rune('a'+i))
		r.sim.Insert(message{From: friend, Text: "a", Files: []messagesim.File{{GUID: guid, Path: tt.path, State: 5}}})
		f, err := r.db.Open(t.Context(), guid, tt.limit)
		if tt.path == tilde {
			testworld.Fails(t, err, "", "a directory was opened")
			continue
		}
		if tt.want != "" {
			testworld.Fails(t, err, tt.want, "Open(%q)", tt.path)
			continue
		}
		if err != nil {
			t.Errorf("Open(%q) = %v", tt.path, err)
			continue
		}
		testworld.Equal(t, string(testworld.Got(io.ReadAll(f))(t)), "hello", "Open(%q)", tt.path)
		f.Close()
	}
	testworld.Fails(t, testworld.Err(r.db.Open(t.Context(), "unknown", 9)), "", "an unknown attachment was opened")
}

func TestSent(t *testing.T) {
	t.Parallel()
	direct := chatdb.Wanted{Key: "-;" + friend, Text: "It's “done”, see: 3 files"}
	same := "Its 'done' see 3  files"
	for _, tt := range []struct {
		name string
		rows []message
		want chatdb.Found
	}{
		{"nothing", nil, chatdb.Found{}},
		{"the row", []message{{GUID: "g", Text: same}}, chatdb.Found{OK: true, GUID: "g", Service: "iMessage"}},
		{"the row by another prefix", []message{{GUID: "g", Text: same, Chat: "any;-;" + friend}}, chatdb.Found{OK: true, GUID: "g", Service: "iMessage"}},
		{"another text", []message{{GUID: "g", Text: "done, see 4 files"}}, chatdb.Found{}},
		{"another chat", []message{{GUID: "g", Text: same, Chat: "any;-;+15550101"}}, chatdb.Found{}},
		{"somebody else's", []message{{GUID: "g", Text: same, From: friend}}, chatdb.Found{}},
		{"with an error", []message{{GUID: "g", Text: same, Columns: map[string]any{"error": 22}}}, chatdb.Found{OK: true, GUID: "g", Error: 22, Service: "iMessage"}},
		{"with an error, then without", []message{{Text: same, Columns: map[string]any{"error": 22}}, {GUID: "g", Text: same}}, chatdb.Found{OK: true, GUID: "g", Service: "iMessage"}},
		{"a ghost", []message{{Join: messagesim.Never}}, chatdb.Found{Ghost: true}},
		{"a ghost and the row", []message{{Join: messagesim.Never}, {GUID: "g", Text: same}}, chatdb.Found{OK: true, GUID: "g", Service: "iMessage"}},
		{"an empty row in the chat", []message{{}}, chatdb.Found{}},
		{"to oneself, our row empty", []message{{GUID: "g"}, {Text: same, From: friend}}, chatdb.Found{OK: true, GUID: "g", Service: "iMessage"}},
		{"to oneself, the other order", []message{{Text: same, From: friend}, {GUID: "g", Text: same}}, chatdb.Found{OK: true, GUID: "g", Service: "iMessage"}},
		{"as SMS", []message{{GUID: "g", Text: same, Service: "SMS"}}, chatdb.Found{OK: true, GUID: "g", Service: "SMS"}},
		{"a tapback with the text", []message{{GUID: "g", Text: same, Columns: map[string]any{"associated_message_type": 2001}}}, chatdb.Found{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := mustReader(t, 15, nil)
			r.sim.Insert(message{Text: same}) // before the mark
			mark, err := r.db.Mark(t.Context())
			testworld.Must(t, err)
			r.sim.InsertAll(tt.rows...)
			got, err := r.db.Sent(t.Context(), mark, direct)
			if err != nil || got != tt.want {
				t.Errorf("Sent = %+v, %v, want %+v", got, err, tt.want)
			}
			r.sim.Replace(15)
			if got, err := r.db.Sent(t.Context(), mark, direct); err != nil || got.Foreign == "" || got.OK {
				t.Errorf("in another database: %+v, %v", got, err)
			}
		})
	}
}

func TestSentFilesAndEmoji(t *testing.T) {
	t.Parallel()
	r := mustReader(t, 26, nil)
	mark := testworld.Got(r.db.Mark(t.Context()))(t)
	r.sim.Insert(message{GUID: "thumb", Text: "👍"})
	r.sim.Insert(message{GUID: "file", Files: []messagesim.File{{GUID: "f", Name: "a.pdf", State: 5}}})
	for _, tt := range []struct{ text, file, want string }{
		{"👍", "", "thumb"}, {"👎", "", ""}, {"", "a.pdf", "file"}, {"", "b.pdf", ""},
	} {
		got, err := r.db.Sent(t.Context(), mark, chatdb.Wanted{Key: "-;" + friend, Text: tt.text, File: tt.file})
		if err != nil || got.GUID != tt.want {
			t.Errorf("Sent(%q, %q) = %+v, %v, want %q", tt.text, tt.file, got, err, tt.want)
		}
	}
	testworld.Fails(t, testworld.Err(r.db.Sent(t.Context(), "x", chatdb.Wanted{})), "", "a mark that is none was accepted")
}

// Texts that are in the attributedBody alone are returned exactly, or not at all.
func TestBodies(t *testing.T) {
	inEach(t, func(t *testing.T, p messagesim.Profile) {
		r := mustReader(t, p, func(o *chatdb.Options) { o.Decode = nil })
		for _, n := range []int{1, 127, 128, 145, 255, 256, 257, 32768, 65535, 65536} {
			text := strings.Repeat("stop agent2, é ", n)[:n]
			text = strings.ToValidUTF8(text, "")
			text += strings.Repeat(".", n-len(text))
			body := messagesim.Body{Text: text}.Encode()
			r.sim.Insert(message{From: friend, Body: body})
			list := r.after(soon)
			if len(list) != 1 || list[0].Text != strings.TrimSpace(text) || list[0].Unreadable != "" {
				t.Fatalf("%d bytes: %.200q", n, textsOf(list))
			}
			r.sim.Insert(message{From: friend, Body: body[:len(body)/2]})
			if list = r.after(soon); len(list) != 1 || list[0].Text != "" || list[0].Unreadable == "" {
				t.Fatalf("%d bytes, damaged: %.200q", n, textsOf(list))
			}
		}
	})
}
