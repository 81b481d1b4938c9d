package telegram_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/internal/testworld"
	"netsky/phone"
	"netsky/phone/chat"
	"netsky/phone/telegram"
)

var _ phone.Transport = (*telegram.Transport)(nil)

// text is a message of user 42's in their private chat.
func text(id int, date int64, words string) string {
	return fmt.Sprintf(`"message":{"message_id":%d,"from":{"id":42},"chat":{"id":42,"type":"private"},"date":%d,"text":%q}`, id, date, words)
}

var private = chat.Chat{Key: "-;42", Identifier: "42", GUID: "42", Direct: true}

// next is Next where it must succeed.
func next(t *testing.T, tr *telegram.Transport, cursor string) chat.Batch {
	t.Helper()
	b, err := tr.Next(t.Context(), cursor)
	testworld.Must(t, err, "Next(%q)", cursor)
	return b
}

// begin is the first run, with nothing there.
func begin(t *testing.T, tr *telegram.Transport) string {
	t.Helper()
	b := next(t, tr, "")
	if len(b.Messages)+len(b.Notes) > 0 {
		t.Fatalf("first run: %+v", b)
	}
	return b.Cursor
}

func texts(b chat.Batch) (list []string) {
	for _, m := range b.Messages {
		list = append(list, m.Text)
	}
	return list
}

func TestFirstRun(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	now := time.Unix(1_800_000_000, 999)
	for i := range 190 { // more than one request brings
		api.push(text(i+1, 1_799_999_999, "old"))
	}
	api.push(`"callback_query":{"id":"7","from":{"id":42},"data":"yes abcde","message":{"message_id":3,"date":0,"chat":{"id":42,"type":"private"}}}`)
	api.push(text(500, 1_800_000_000, "new"))
	tr := bot(t, api.URL, func(o *telegram.Options) { o.Now = func() time.Time { return now } })

	b := next(t, tr, "")
	if !slices.Equal(texts(b), []string{"new"}) {
		t.Fatalf("got %v", texts(b))
	}
	if want := []string{"telegram: first run: 191 messages, presses and reactions from before it were left out"}; !slices.Equal(b.Notes, want) {
		t.Errorf("notes %q, want %q", b.Notes, want)
	}
	again := next(t, tr, b.Cursor) // ends the first run
	if len(again.Messages) > 0 {
		t.Errorf("the next one brings %v", texts(again))
	}
	api.push(text(501, 1, "with a clock that is wrong"))
	if b := next(t, tr, again.Cursor); !slices.Equal(texts(b), []string{"with a clock that is wrong"}) {
		t.Errorf("after the first run: %v", texts(b))
	}
}

// A batch that was not recorded comes again, under the same ids; one that was, does not.
func TestCrashBetweenBatchAndRecord(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	cursor := begin(t, bot(t, api.URL))
	api.push(text(1, 1_800_000_000, "one"))
	api.push(`"callback_query":{"id":"77","from":{"id":42},"data":"yes abcde","message":{"message_id":3,"date":0,"chat":{"id":42,"type":"private"}}}`)
	api.push(`"message_reaction":{"chat":{"id":42,"type":"private"},"message_id":3,"user":{"id":42},"date":5,"old_reaction":[],"new_reaction":[{"type":"emoji","emoji":"👍"}]}`)

	first := next(t, bot(t, api.URL), cursor)
	if len(first.Messages) != 3 || api.waiting() != 3 {
		t.Fatalf("%d messages, %d updates kept", len(first.Messages), api.waiting())
	}
	second := next(t, bot(t, api.URL), cursor)
	if !reflect.DeepEqual(first, second) {
		t.Errorf("again:\n%+v\nfirst:\n%+v", second, first)
	}
	api.push(text(2, 1_800_000_000, "two"))
	if b := next(t, bot(t, api.URL), first.Cursor); !slices.Equal(texts(b), []string{"two"}) || api.waiting() != 1 {
		t.Errorf("after recording: %v, %d updates kept", texts(b), api.waiting())
	}
	seen := make(map[string]bool)
	for _, m := range first.Messages {
		if m.GUID == "" || seen[m.GUID] {
			t.Errorf("GUID %q twice or empty", m.GUID)
		}
		seen[m.GUID] = true
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	const at = `"date":1800000000`
	base := chat.Message{Chat: private, Handle: "42", Service: "Telegram", Kind: chat.Text, At: time.Unix(1_800_000_000, 0), GUID: "123456:42:9"}
	with := func(f func(*chat.Message)) []chat.Message {
		m := base
		f(&m)
		return []chat.Message{m}
	}
	private := func(rest string) string {
		return `"message":{"message_id":9,"from":{"id":42,"username":"owner"},"chat":{"id":42,"type":"private"},` + at + `,` + rest + `}`
	}
	file := func(name, mime string, size int64) []chat.Attachment {
		return []chat.Attachment{{GUID: "F", Name: name, MIME: mime, Bytes: size}}
	}
	reacted := func(old, new string) string {
		return `"message_reaction":{"chat":{"id":42,"type":"private"},"message_id":9,"user":{"id":42},` + at + `,"old_reaction":[` + old + `],"new_reaction":[` + new + `]}`
	}
	const up, down, heart, custom = `{"type":"emoji","emoji":"👍"}`, `{"type":"emoji","emoji":"👎"}`, `{"type":"emoji","emoji":"❤"}`, `{"type":"custom_emoji","custom_emoji_id":"1"}`
	reaction := func(n int, what string, removed bool) chat.Message {
		m := base
		m.Kind, m.Reaction, m.Removed, m.About = chat.Reaction, what, removed, "123456:42:9"
		m.GUID = fmt.Sprintf("123456:42:9:reaction:1800000000:701:%d", n)
		return m
	}
	for _, tt := range []struct {
		name, update string
		want         []chat.Message
	}{
		{"text", private(`"text":"hi \ud83d\ude00"`), with(func(m *chat.Message) { m.Text = "hi 😀" })},
		{"text that the phone has cut", private(`"text":"` + strings.Repeat("😀", 1024) + `"`), with(func(m *chat.Message) { m.Text, m.More = strings.Repeat("😀", 1024), true })},
		{"one of an album", private(`"media_group_id":"7","photo":[{"file_id":"F","width":90,"height":90}]`),
			with(func(m *chat.Message) { m.More, m.Attachments = true, file("photo.jpg", "image/jpeg", -1) })},
		{"ids beyond 2^53", `"message":{"message_id":9007199254740993,"from":{"id":9007199254740995},"chat":{"id":9007199254740995,"type":"private"},` + at + `,"text":"x"}`,
			with(func(m *chat.Message) {
				m.Text, m.Handle, m.GUID = "x", "9007199254740995", "123456:9007199254740995:9007199254740993"
				m.Chat = chat.Chat{Key: "-;9007199254740995", Identifier: "9007199254740995", GUID: "9007199254740995", Direct: true}
			})},
		{"group", `"message":{"message_id":9,"from":{"id":42},"chat":{"id":-1001,"type":"supergroup","title":"x"},` + at + `,"text":"x"}`,
			with(func(m *chat.Message) {
				m.Text, m.GUID, m.Chat = "x", "123456:-1001:9", chat.Chat{Key: "+;-1001", Identifier: "-1001", GUID: "-1001"}
			})},
		{"chat of unknown type", `"message":{"message_id":9,"from":{"id":42},"chat":{"id":42},` + at + `,"text":"x"}`,
			with(func(m *chat.Message) { m.Text, m.Chat = "x", chat.Chat{Key: "+;42", Identifier: "42", GUID: "42"} })},
		{"in the name of a chat", private(`"text":"x","sender_chat":{"id":-5,"type":"channel"}`), with(func(m *chat.Message) { m.Text, m.Handle = "x", "" })},
		{"our own", `"message":{"message_id":9,"from":{"id":123456},"chat":{"id":42,"type":"private"},` + at + `,"text":"x"}`,
			with(func(m *chat.Message) { m.Text, m.Handle, m.FromMe = "x", "", true })},
		{"nobody", `"message":{"message_id":9,"chat":{"id":42,"type":"private"},` + at + `,"text":"x"}`, with(func(m *chat.Message) { m.Text, m.Handle = "x", "" })},
		{"reply", private(`"text":"x","reply_to_message":{"message_id":4,"date":1,"chat":{"id":42}}`), with(func(m *chat.Message) { m.Text, m.About = "x", "123456:42:4" })},
		{"forwarded", private(`"text":"yes abcde","forward_origin":{"type":"hidden_user","sender_user_name":"x","date":1}`), with(func(m *chat.Message) { m.Text = "(forwarded) yes abcde" })},
		{"forwarded, by an old server", private(`"text":"yes abcde","forward_date":1`), with(func(m *chat.Message) { m.Text = "(forwarded) yes abcde" })},
		{"written by another bot", private(`"text":"yes abcde","via_bot":{"id":7,"is_bot":true}`), with(func(m *chat.Message) { m.Text = "(by another bot) yes abcde" })},
		{"photo", private(`"caption":"look","photo":[{"file_id":"s","width":90,"height":90},{"file_id":"F","width":900,"height":900,"file_size":7},{"file_id":"m","width":320,"height":320}]`),
			with(func(m *chat.Message) { m.Text, m.Attachments = "look", file("photo.jpg", "image/jpeg", 7) })},
		{"document", private(`"document":{"file_id":"F","file_name":"../a.pdf","mime_type":"application/pdf","file_size":12}`),
			with(func(m *chat.Message) { m.Attachments = file("../a.pdf", "application/pdf", 12) })},
		{"animation, which is a document too", private(`"document":{"file_id":"F","file_name":"a.mp4","mime_type":"video/mp4"},"animation":{"file_id":"F"}`),
			with(func(m *chat.Message) { m.Attachments = file("a.mp4", "video/mp4", -1) })},
		{"voice", private(`"voice":{"file_id":"F","file_size":3}`), with(func(m *chat.Message) { m.Attachments = file("voice.ogg", "audio/ogg", 3) })},
		{"video, too large", private(`"video":{"file_id":"F","file_size":99999999}`), with(func(m *chat.Message) {
			m.Attachments = file("video.mp4", "video/mp4", 99999999)
			m.Attachments[0].Missing = "it is larger than 20 MB, which a bot cannot fetch"
		})},
		{"sticker", private(`"sticker":{"file_id":"F","emoji":"👍"}`), with(func(m *chat.Message) { m.Text = "(sticker 👍)" })},
		{"location", private(`"location":{"latitude":52.52,"longitude":13.405}`), with(func(m *chat.Message) { m.Text = "(location: 52.520000, 13.405000)" })},
		{"venue", private(`"location":{"latitude":52.52,"longitude":13.405},"venue":{"title":"Café","address":"Main Street 1","location":{}}`),
			with(func(m *chat.Message) { m.Text = "(location: Café, Main Street 1: 52.520000, 13.405000)" })},
		{"contact", private(`"contact":{"phone_number":"+15550100","first_name":"Ann"}`), with(func(m *chat.Message) { m.Text = "(contact: Ann, +15550100)" })},
		{"poll", private(`"poll":{"id":"1","question":"yes abcde","options":[{"text":"yes"},{"text":"no"}]}`),
			with(func(m *chat.Message) { m.Text = "(poll: yes abcde\n1. yes\n2. no)" })},
		{"dice", private(`"dice":{"emoji":"🎲","value":4}`), with(func(m *chat.Message) { m.Text = "(🎲: 4)" })},
		{"forwarded contact", private(`"contact":{"phone_number":"+15550100","first_name":"Ann"},"forward_date":1`),
			with(func(m *chat.Message) { m.Text = "(forwarded) (contact: Ann, +15550100)" })},
		{"story", private(`"story":{"id":1,"chat":{"id":2}}`), with(func(m *chat.Message) { m.Unreadable = "it is a story, which a bot cannot pass on" })},
		{"links", private(`"text":"😀 see this and https://b.example","entities":[{"type":"text_link","offset":7,"length":4,"url":"https://a.example/?q=1"},{"type":"url","offset":16,"length":17},` +
			`{"type":"text_link","offset":16,"length":17,"url":"https://b.example"},{"type":"text_link","offset":30,"length":99,"url":"https://c.example"},{"type":"text_link","offset":-1,"length":1,"url":"https://d.example"}]`),
			with(func(m *chat.Message) { m.Text = "😀 see this (https://a.example/?q=1) and https://b.example" })},
		{"link in a caption", private(`"caption":"this","caption_entities":[{"type":"text_link","offset":0,"length":4,"url":"https://a.example"}],"document":{"file_id":"F"}`),
			with(func(m *chat.Message) { m.Text, m.Attachments = "this (https://a.example)", file("document", "", -1) })},
		{"topic", private(`"text":"x","message_thread_id":7,"is_topic_message":true,"reply_to_message":{"message_id":7}`), with(func(m *chat.Message) { m.Text, m.Chat.GUID = "x", "42/7" })},
		{"reply in a topic", private(`"text":"x","message_thread_id":7,"is_topic_message":true,"reply_to_message":{"message_id":8}`),
			with(func(m *chat.Message) { m.Text, m.Chat.GUID, m.About = "x", "42/7", "123456:42:8" })},
		{"thread of replies", private(`"text":"x","message_thread_id":7`), with(func(m *chat.Message) { m.Text = "x" })},
		{"joined", private(`"new_chat_members":[{"id":1}]`), with(func(m *chat.Message) { m.Kind = chat.Event })},
		{"edit", `"edited_message":{"message_id":9,"from":{"id":42},"chat":{"id":42,"type":"private"},` + at + `,"text":"x"}`, nil},
		{"press", `"callback_query":{"id":"77","from":{"id":42},"data":"yes abcde","message":{"message_id":9,"date":0,"chat":{"id":42,"type":"private"}}}`,
			with(func(m *chat.Message) {
				m.Kind, m.Text, m.About, m.GUID, m.At = chat.Press, "yes abcde", "123456:42:9", "123456:press:77", time.Time{}
			})},
		{"like", reacted("", up), []chat.Message{reaction(0, "like", false)}},
		{"dislike instead of like", reacted(up, down), []chat.Message{reaction(0, "like", true), reaction(1, "dislike", false)}},
		{"taken back", reacted(down, ""), []chat.Message{reaction(0, "dislike", true)}},
		{"others", reacted(heart, custom+","+up), []chat.Message{reaction(0, "like", false)}},
		{"heart", reacted("", heart), []chat.Message{reaction(0, "other", false)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			api := newAPI(t)
			tr := bot(t, api.URL)
			cursor := begin(t, tr)
			api.push(tt.update)
			b := next(t, tr, cursor)
			if !reflect.DeepEqual(b.Messages, tt.want) || len(b.Notes) > 0 {
				t.Errorf("got\n%+v %q\nwant\n%+v", b.Messages, b.Notes, tt.want)
			}
			if b.Cursor == cursor {
				t.Error("the cursor stays, so it is returned for ever")
			}
		})
	}
}

// What is malformed is left out and told; the rest arrives, and nothing waits for ever.
func TestMalformedUpdates(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		`{"update_id":%d,"message":{"message_id":1,"chat":{"id":42,"type":"private"},"date":"yesterday","text":"x"}}`,
		`{"update_id":%d,"message":{"message_id":1.5,"chat":{"id":42,"type":"private"},"date":1,"text":"x"}}`,
		`{"update_id":"%d","message":{"message_id":1,"chat":{"id":42,"type":"private"},"date":1,"text":7}}`,
		`{"update_id":%d,"message":{"message_id":1,"chat":{"id":99999999999999999999},"date":1,"text":"x"}}`,
		`{"update_id":%d,"message":{"message_id":1,"date":1,"text":"x"}}`,
		`{"update_id":%d,"message":[]}`,
		`{"update_id":%d,"callback_query":{"id":"7","from":{"id":42},"data":"yes abcde"}}`,
		`{"update_id":%d,"message_reaction":{"message_id":0}}`,
		`{"no_number":%d}`, `[%d]`, `%d`, `null`,
	} {
		t.Run(bad, func(t *testing.T) {
			t.Parallel()
			api := newAPI(t)
			tr := bot(t, api.URL)
			cursor := begin(t, tr)
			api.push(text(5, 1, "before"))
			cursor = next(t, tr, cursor).Cursor
			if strings.Contains(bad, "%d") {
				bad = fmt.Sprintf(bad, api.last+1)
			}
			api.mu.Lock()
			api.last++
			api.pushRaw(raw{api.last, bad})
			api.mu.Unlock()
			b := next(t, tr, cursor)
			if len(b.Messages) != 0 || len(b.Notes) != 1 || !strings.Contains(b.Notes[0], "was left out") {
				t.Fatalf("%+v", b)
			}
			api.push(text(6, 1, "after"))
			if b := next(t, tr, b.Cursor); !slices.Equal(texts(b), []string{"after"}) {
				t.Errorf("then: %+v", b)
			}
			testworld.Equal(t, api.waiting(), 1, "updates kept")
		})
	}
}

// The numbers of updates begin anew when there were none for a week.
func TestNumbersBeginAnew(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	tr := bot(t, api.URL)
	api.push(text(1, time.Now().Unix()+60, "high"))
	cursor := next(t, tr, "").Cursor
	cursor = next(t, tr, cursor).Cursor
	api.mu.Lock()
	api.queue, api.last = nil, 10
	api.mu.Unlock()
	api.push(text(2, 1, "low"))
	b := next(t, tr, cursor)
	if !slices.Equal(texts(b), []string{"low"}) {
		t.Fatalf("%+v", b)
	}
	api.push(text(3, 1, "next"))
	if b := next(t, tr, b.Cursor); !slices.Equal(texts(b), []string{"next"}) {
		t.Errorf("%+v", b)
	}
}

func TestAnotherBot(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	file := tokenFile(t, secret, 0o600)
	tr := bot(t, api.URL, func(o *telegram.Options) { o.TokenFile = file })
	api.push(text(1, time.Now().Unix()+60, "mine"))
	cursor := next(t, tr, "").Cursor

	api.mu.Lock()
	api.token, api.queue = "654321:AAtestTESTtestTESTtestTESTtestTEST-_", nil
	api.mu.Unlock()
	testworld.Must(t, os.WriteFile(file, []byte(api.token), 0o600))
	api.push(text(1, 1, "old"))
	b := next(t, tr, cursor)
	if len(b.Messages) != 0 || len(b.Notes) != 2 || !strings.Contains(b.Notes[0], "is of bot 654321, and was of bot 123456") {
		t.Errorf("%+v", b)
	}
	for _, damaged := range []string{"{", "[]", `{"offset":-3}`, `{"bot":"x"}`} {
		if b := next(t, tr, damaged); len(b.Messages) != 0 || len(b.Notes) == 0 {
			t.Errorf("cursor %s: %+v", damaged, b)
		}
	}
}

func TestNextWaits(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	tr := bot(t, api.URL, func(o *telegram.Options) { o.Poll = time.Minute })
	cursor := begin(t, tr)
	got := make(chan chat.Batch, 1)
	go func() {
		b, _ := tr.Next(t.Context(), cursor)
		got <- b
	}()
	testworld.Wait(t, "a request that waits", func() bool {
		api.mu.Lock()
		defer api.mu.Unlock()
		return api.poll != nil
	})
	api.push(text(1, 1, "now"))
	if b := <-got; !slices.Equal(texts(b), []string{"now"}) {
		t.Errorf("%+v", b)
	}
	if n := api.count("getUpdates"); n > 2 {
		t.Errorf("asked %d times", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	testworld.ErrorIs(t, testworld.Err(tr.Next(ctx, cursor)), context.Canceled, "cancelled")
}

// A press is answered at once; that the answer fails or hangs delays nothing for long.
func TestPressIsAnswered(t *testing.T) {
	t.Parallel()
	for _, hangs := range []bool{false, true} {
		api := newAPI(t)
		tr := bot(t, api.URL)
		cursor := begin(t, tr)
		if hangs {
			api.breaks(func(method string, w http.ResponseWriter, r *http.Request) bool {
				if method == "answerCallbackQuery" {
					hang(r)
				}
				return method == "answerCallbackQuery"
			})
		}
		for i := range 5 {
			api.push(fmt.Sprintf(`"callback_query":{"id":"7%d","from":{"id":42},"data":"yes abcde","message":{"message_id":9,"chat":{"id":42,"type":"private"}}}`, i))
		}
		began := time.Now()
		b := next(t, tr, cursor)
		testworld.Equal(t, len(b.Messages), 5, "hangs %v: %+v", hangs, b)
		if hangs {
			if d := time.Since(began); d > 20*time.Second {
				t.Errorf("took %v", d)
			}
			continue
		}
		if want := []string{"70", "71", "72", "73", "74"}; !slices.Equal(api.answers, want) {
			t.Errorf("answered %v", api.answers)
		}
	}
}
