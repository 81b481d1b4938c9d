package telegram_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"netsky/internal/testworld"
	"netsky/phone/chat"
	"netsky/phone/telegram"
)

// Whatever the server says: it is an error that the owner can read, or the cursor moves on
// and what is returned is text.
func FuzzUpdates(f *testing.F) {
	for _, s := range []string{
		`[]`, `[null]`, `[{}]`, `{}`, `[{"update_id":1,` + text(1, 1, "x") + `}]`, `[{"update_id":9223372036854775807}]`, `[{"update_id":-1}]`,
		`[{"update_id":1,"message_reaction":{"chat":{"id":1},"message_id":2,"old_reaction":[{"emoji":"👎"}],"new_reaction":[{"emoji":"👍"},{"emoji":"x"}]}}]`,
		`[{"update_id":1,"callback_query":{"id":"1","from":{"id":1},"message":{"message_id":1,"chat":{"id":1}}}},{"x":1}]`,
		`[{"update_id":1,"message":{"message_id":1,"chat":{"id":1},"text":"\ud800","document":{"file_id":"\u0000","file_size":-9}}}]`,
		`[],"ok":false,"error_code":429,"parameters":{"retry_after":-1}`,
	} {
		f.Add(s)
	}
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "getUpdates") {
			w.Write([]byte(`{"ok":true,"result":` + body + `}`))
			return
		}
		w.Write([]byte(`{"ok":true}`))
	}))
	f.Cleanup(server.Close)
	file := filepath.Join(f.TempDir(), "token")
	testworld.Must(f, os.WriteFile(file, []byte(secret), 0o600))
	const cursor = `{"bot":123456,"offset":5}`
	f.Fuzz(func(t *testing.T, s string) {
		body = s
		// One of its own, as an answer may be a request to wait.
		tr, err := telegram.New(telegram.Options{TokenFile: file, API: server.URL, Poll: time.Nanosecond})
		testworld.Must(t, err)
		defer tr.Close()
		b, err := tr.Next(t.Context(), cursor)
		var d *chat.Degraded
		if err != nil && (!errors.As(err, &d) || strings.ContainsAny(d.Reason, "\n\x1b")) {
			t.Fatalf("%q", err)
		}
		if (len(b.Messages) > 0 || len(b.Notes) > 0) && b.Cursor == cursor || err == nil && b.Cursor == "" {
			t.Errorf("the cursor stays: %+v", b)
		}
		for _, n := range b.Notes {
			if strings.ContainsAny(n, "\n\x1b") || len(n) > 2000 {
				t.Errorf("note %q", n)
			}
		}
		for _, m := range b.Messages {
			if m.GUID == "" || m.Chat.Key == "" || !utf8.ValidString(m.Text) || m.Service != chat.ServiceTelegram {
				t.Errorf("%+v", m)
			}
		}
	})
}
