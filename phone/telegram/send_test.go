package telegram_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/internal/testworld"
	"netsky/phone/chat"
	"netsky/phone/telegram"
)

func send(t *testing.T, tr *telegram.Transport, out chat.Outgoing) chat.Receipt {
	t.Helper()
	r, err := tr.Send(t.Context(), out)
	testworld.Must(t, err, "Send")
	return r
}

func TestSend(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	tr := bot(t, api.URL)
	r := send(t, tr, chat.Outgoing{Chat: private, Text: "*hi* <b>\nthere 😀", Choices: []string{"yes abcde", "no abcde", "later"}})
	if want := (chat.Receipt{State: chat.Sent, GUID: "123456:42:9001"}); r != want {
		t.Errorf("got %+v, want %+v", r, want)
	}
	got, _ := json.Marshal(api.sent[0])
	const want = `{"chat_id":42,"link_preview_options":{"is_disabled":true},"reply_markup":{"inline_keyboard":[` +
		`[{"callback_data":"yes abcde","text":"yes abcde"},{"callback_data":"no abcde","text":"no abcde"}],[{"callback_data":"later","text":"later"}]]},` +
		`"text":"*hi* \u003cb\u003e\nthere 😀"}`
	testworld.Equal(t, string(got), want, "sent")
	testworld.ErrorIs(t, testworld.Err(tr.Find(t.Context(), chat.Outgoing{})), chat.ErrCannotLook, "Find")
	testworld.ErrorIs(t, testworld.Err(tr.History(t.Context(), private, 1)), chat.ErrNoHistory, "History")
	testworld.Equal(t, testworld.Got(tr.Mark(t.Context()))(t), "", "Mark")
}

// What Telegram would refuse is not tried: 4,096 UTF-16 units are the limit, not characters.
func TestUnsendable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"empty", "large", "kept", "real"} {
		testworld.Must(t, os.WriteFile(path(name), nil, 0o600))
	}
	testworld.Must(t, errors.Join(os.Truncate(path("large"), 50<<20+1), os.Truncate(path("real"), 3), os.Symlink(path("real"), path("link"))))
	api := newAPI(t)
	tr := bot(t, api.URL, func(o *telegram.Options) {
		o.Refuse = func(p string) error {
			if filepath.Base(p) == "kept" {
				return errors.New(p + ": is netsky's own")
			}
			return nil
		}
	})
	for _, tt := range []struct {
		name string
		out  chat.Outgoing
		want string
	}{
		{"long", chat.Outgoing{Chat: private, Text: strings.Repeat("😀", 2049)}, "the text has 4098 UTF-16 units; Telegram takes 4096"},
		{"blank", chat.Outgoing{Chat: private, Text: " \n"}, "the text is empty"},
		{"not text", chat.Outgoing{Chat: private, Text: "a\xff"}, "the text is not valid UTF-8"},
		{"choice", chat.Outgoing{Chat: private, Text: "x", Choices: []string{"a", strings.Repeat("a", 65)}}, "choice 2 has 65 bytes; Telegram takes 1 to 64"},
		{"no choice", chat.Outgoing{Chat: private, Text: "x", Choices: []string{""}}, "choice 1 has 0 bytes; Telegram takes 1 to 64"},
		{"chat", chat.Outgoing{Chat: chat.Chat{Key: "-;+15550100"}, Text: "x"}, "the chat is none of Telegram's: it has no id of theirs"},
		{"name", chat.Outgoing{Chat: chat.Chat{GUID: "@owner"}, Text: "x"}, "the chat is none of Telegram's: it has no id of theirs"},
		{"no file", chat.Outgoing{Chat: private, File: path("none")}, path("none") + ": no such file or directory"},
		{"empty file", chat.Outgoing{Chat: private, File: path("empty")}, path("empty") + ": is empty, which Telegram does not take"},
		{"large file", chat.Outgoing{Chat: private, File: path("large")}, path("large") + ": has 52428801 bytes; a bot can send 50 MB"},
		{"link", chat.Outgoing{Chat: private, File: path("link")}, path("link") + ": is a symbolic link"},
		{"directory", chat.Outgoing{Chat: private, File: dir}, dir + ": not a regular file"},
		{"netsky's", chat.Outgoing{Chat: private, File: path("kept")}, path("kept") + ": is netsky's own"},
	} {
		testworld.Equal(t, send(t, tr, tt.out), (chat.Receipt{State: chat.Failed, Fact: tt.want}), "%s", tt.name)
	}
	if n := api.count("sendMessage") + api.count("sendDocument"); n != 0 {
		t.Errorf("asked %d times", n)
	}
	if r := send(t, tr, chat.Outgoing{Chat: private, Text: strings.Repeat("😀", 2048)}); r.State != chat.Sent {
		t.Errorf("4096 units: %+v", r)
	}
}

func TestSendFile(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	tr := bot(t, api.URL)
	file := filepath.Join(t.TempDir(), "a \"quoted\"\r\nname é.pdf")
	data := bytes.Repeat([]byte("0123456789\r\n--"), 100_000)
	testworld.Must(t, os.WriteFile(file, data, 0o600))
	r := send(t, tr, chat.Outgoing{Chat: chat.Chat{Key: "-;42"}, File: file})
	if want := (chat.Receipt{State: chat.Sent, GUID: "123456:42:8001"}); r != want {
		t.Fatalf("got %+v, want %+v", r, want)
	}
	if u := api.uploads[0]; u.chat != "42" || u.name != "a _quoted___name é.pdf" || !bytes.Equal(u.data, data) {
		t.Errorf("chat %s, name %q, %d bytes", u.chat, u.name, len(u.data))
	}
}

// Each failure of the API, and what it means for a message.
func TestSendFaults(t *testing.T) {
	t.Parallel()
	type fault = func(w http.ResponseWriter, r *http.Request)
	refusal := func(code int, text string, parameters map[string]any) fault {
		return func(w http.ResponseWriter, r *http.Request) {
			say(w, code, map[string]any{"ok": false, "error_code": code, "description": text, "parameters": parameters})
		}
	}
	body := func(code int, text string) fault {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(code)
			io.WriteString(w, text)
		}
	}
	for _, tt := range []struct {
		name  string
		fault fault
		want  chat.Receipt
	}{
		{"429", refusal(429, "Too Many Requests: retry after 17", map[string]any{"retry_after": 17}),
			chat.Receipt{State: chat.Failed, Again: true, Wait: 17 * time.Second, Fact: "telegram: sendMessage: 429 Too Many Requests: retry after 17"}},
		{"429 without a time", refusal(429, "Too Many Requests", nil),
			chat.Receipt{State: chat.Failed, Again: true, Wait: time.Second, Fact: "telegram: sendMessage: 429 Too Many Requests"}},
		{"no such chat", refusal(400, "Bad Request: chat not found", nil),
			chat.Receipt{State: chat.Failed, Fact: "telegram: sendMessage: 400 Bad Request: chat not found"}},
		{"blocked", refusal(403, "Forbidden: bot was blocked by the user", nil),
			chat.Receipt{State: chat.Failed, Fact: "telegram: sendMessage: 403 Forbidden: bot was blocked by the user"}},
		{"moved", refusal(400, "Bad Request: group chat was upgraded", map[string]any{"migrate_to_chat_id": -100123}),
			chat.Receipt{State: chat.Failed, Fact: "telegram: the group has become another chat, -100123"}},
		{"500", refusal(500, "Internal Server Error: restart", nil),
			chat.Receipt{State: chat.Unconfirmed, Fact: "telegram: sendMessage: 500 Internal Server Error: restart"}},
		{"a gateway's 502", body(502, "<html>"), chat.Receipt{State: chat.Unconfirmed, Fact: "telegram: sendMessage: 502 Bad Gateway"}},
		{"a gateway's 413", body(413, "<html>"), chat.Receipt{State: chat.Failed, Fact: "telegram: sendMessage: 413 Request Entity Too Large"}},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
			chat.Receipt{State: chat.Unconfirmed, Fact: "telegram: sendMessage: 302 Found"}},
		{"not JSON", body(200, "hello"), chat.Receipt{State: chat.Unconfirmed, Fact: "telegram: sendMessage: the answer is none of the Bot API's"}},
		{"ok of another type", body(200, `{"ok":"yes"}`), chat.Receipt{State: chat.Unconfirmed, Fact: "telegram: sendMessage: the answer is none of the Bot API's"}},
		{"no id", body(200, `{"ok":true,"result":{}}`), chat.Receipt{State: chat.Unconfirmed, Fact: "telegram's answer does not say which message it is"}},
		{"id of another type", body(200, `{"ok":true,"result":{"message_id":"9"}}`), chat.Receipt{State: chat.Unconfirmed,
			Fact: "telegram: sendMessage: the answer is none of the Bot API's: json: cannot unmarshal string into Go struct field ref.message_id of type int64"}},
		{"huge", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"ok":true,"result":"`, strings.Repeat("x", 9<<20), `"}`)
		}, chat.Receipt{State: chat.Unconfirmed, Fact: "telegram: sendMessage: the answer is larger than 8 MiB"}},
		{"cut", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, `{"ok":true,`)
		}, chat.Receipt{State: chat.Unconfirmed, Fact: "telegram: sendMessage: the answer broke off: unexpected EOF"}},
		{"hung up after reading", func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			panic(http.ErrAbortHandler)
		}, chat.Receipt{State: chat.Unconfirmed, Fact: "telegram: sendMessage: EOF"}},
		{"control characters", refusal(400, "Bad\x1b[2J\nRequest", nil), chat.Receipt{State: chat.Failed, Fact: "telegram: sendMessage: 400 Bad [2J Request"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			api := newAPI(t)
			api.Config.ErrorLog = nil
			tr := bot(t, api.URL)
			api.breaks(func(method string, w http.ResponseWriter, r *http.Request) bool { tt.fault(w, r); return true })
			testworld.Equal(t, send(t, tr, chat.Outgoing{Chat: private, Text: "x"}), tt.want)
			if n := api.count("sendMessage"); n != 1 {
				t.Errorf("tried %d times", n)
			}
		})
	}
}

// Where nothing listens, or the request did not get out whole, another try cannot send twice.
func TestSendAgain(t *testing.T) {
	t.Parallel()
	l := testworld.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.(*net.TCPConn).SetLinger(0)
			io.ReadFull(c, make([]byte, 1000))
			c.Close()
		}
	}()
	big := filepath.Join(t.TempDir(), "big")
	testworld.Must(t, os.WriteFile(big, make([]byte, 32<<20), 0o600))
	r := send(t, bot(t, "http://"+l.Addr().String()), chat.Outgoing{Chat: private, File: big})
	if r.State != chat.Failed || !r.Again {
		t.Errorf("cut short: %+v", r)
	}
	down := httptest.NewServer(nil)
	down.Close()
	r = send(t, bot(t, down.URL), chat.Outgoing{Chat: private, Text: "x"})
	if r.State != chat.Failed || !r.Again || !strings.Contains(r.Fact, "connection refused") {
		t.Errorf("down: %+v", r)
	}
}

// A send that has begun is finished, whatever becomes of whoever asked for it.
func TestSendOutlivesItsContext(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	tr := bot(t, api.URL)
	ctx, cancel := context.WithCancel(t.Context())
	api.breaks(func(string, http.ResponseWriter, *http.Request) bool { cancel(); return false })
	r, err := tr.Send(ctx, chat.Outgoing{Chat: private, Text: "x"})
	if err != nil || r.State != chat.Sent {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := tr.Send(ctx, chat.Outgoing{Chat: private, Text: "x"}); !errors.Is(err, context.Canceled) || api.count("sendMessage") != 1 {
		t.Errorf("cancelled before: %v", err)
	}
}

func TestSendWithoutAToken(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	api.token = "other"
	var d *chat.Degraded
	if r, err := bot(t, api.URL).Send(t.Context(), chat.Outgoing{Chat: private, Text: "x"}); !errors.As(err, &d) || !strings.Contains(d.Next, "@BotFather") || !reflect.ValueOf(r).IsZero() {
		t.Errorf("%+v %v", r, err)
	}
}

// The buttons of a message that this bot sent to that chat are removed, once or twice.
func TestClearChoices(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	tr := bot(t, api.URL)
	r := send(t, tr, chat.Outgoing{Chat: private, Text: "x", Choices: []string{"yes abcde"}})
	for range 2 {
		testworld.Equal(t, tr.ClearChoices(t.Context(), private, r.GUID), nil)
	}
	for _, guid := range []string{"", "x", "654321:" + private.GUID + ":9001", "123456:1:9001", "123456:" + private.GUID} {
		testworld.Fails(t, tr.ClearChoices(t.Context(), private, guid), "", "%q is one of its messages", guid)
	}
	want := private.GUID + " 9001 <nil>"
	if !slices.Equal(api.edits, []string{want, want}) {
		t.Errorf("asked for %q, want %q twice", api.edits, want)
	}
}

// What was asked in a topic is answered there; in the chat itself once the topic is gone.
func TestSendToTopic(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	tr := bot(t, api.URL)
	file := filepath.Join(t.TempDir(), "a.txt")
	testworld.Must(t, os.WriteFile(file, []byte("a"), 0o600))
	topic := private
	topic.GUID = "42/7"
	testworld.Equal(t, send(t, tr, chat.Outgoing{Chat: topic, Text: "here"}), (chat.Receipt{State: chat.Sent, GUID: "123456:42:9001"}), "a text")
	if r := send(t, tr, chat.Outgoing{Chat: topic, File: file}); r.State != chat.Sent || api.uploads[0].chat != "42/7" {
		t.Errorf("a file: %+v, %+v", r, api.uploads)
	}
	api.breaks(func(method string, w http.ResponseWriter, r *http.Request) bool {
		data, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(data))
		if method != "sendMessage" || !bytes.Contains(data, []byte("message_thread_id")) {
			return false
		}
		refuse(w, 400, "Bad Request: message thread not found")
		return true
	})
	if r := send(t, tr, chat.Outgoing{Chat: topic, Text: "there"}); r.State != chat.Sent {
		t.Errorf("its topic is gone: %+v", r)
	}
	testworld.Equal(t, fmt.Sprint(api.sent[0]["message_thread_id"], " ", api.sent[1]["message_thread_id"]), "7 <nil>", "sent to")
	for _, guid := range []string{"42/", "42/x", "/7", "42/07", "42/0", "42/7/1"} {
		topic.GUID = guid
		if r := send(t, tr, chat.Outgoing{Chat: topic, Text: "x"}); r.State != chat.Failed {
			t.Errorf("%q: %+v", guid, r)
		}
	}
}
