package telegram_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/internal/advice"
	"netsky/internal/testworld"
	"netsky/phone/chat"
	"netsky/phone/telegram"
)

// spill is everything that an error tells anybody.
func spill(err error) string {
	s := fmt.Sprintf("%v|%+v|%#v|%q|%s", err, err, err, err, advice.Of(err))
	var d *chat.Degraded
	if errors.As(err, &d) {
		s += d.Reason + d.Next + fmt.Sprintf("%+v", *d)
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		s += fmt.Sprintf("|%v|%+v|%#v", e, e, e)
	}
	var b bytes.Buffer
	slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "err", err)
	slog.New(slog.NewTextHandler(&b, nil)).Info("x", "err", err)
	return s + b.String()
}

// tellsPart reports whether a text has eight characters in a row of what is secret in the token.
func tellsPart(s string) bool {
	for i := 8; i+8 <= len(secret); i++ {
		if strings.Contains(s, secret[i:i+8]) {
			return true
		}
	}
	return false
}

// Each failure of the API: Next says what it is and what to do, tells nobody the token, and
// recovers with the same cursor.
func TestNextFaults(t *testing.T) {
	t.Parallel()
	refusal := func(code int, text string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) { refuse(w, code, text) }
	}
	body := func(code int, text string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(code)
			io.WriteString(w, text)
		}
	}
	for _, tt := range []struct {
		name   string
		fault  func(http.ResponseWriter, *http.Request)
		reason string
		next   string // part of it
	}{
		{"401", refusal(401, "Unauthorized"), "telegram: the bot's token is not valid (any more): getUpdates: 401 Unauthorized", "@BotFather"},
		{"404", refusal(404, "Not Found"), "knows no such bot, or is no Bot API server: getUpdates: 404 Not Found", "`api`"},
		{"another reader", refusal(409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"),
			"telegram: another program reads this bot's messages: getUpdates: 409 Conflict: terminated", "another netsky"},
		{"webhook", refusal(409, "Conflict: can't use getUpdates method while webhook is active"), "telegram: the bot's messages go to a webhook", "deleteWebhook"},
		{"429", func(w http.ResponseWriter, r *http.Request) {
			say(w, 429, map[string]any{"ok": false, "error_code": 429, "description": "Too Many Requests", "parameters": map[string]any{"retry_after": 1}})
		}, "telegram: asked to wait 1s: getUpdates: 429 Too Many Requests", ""},
		{"500", refusal(500, "Internal Server Error"), "telegram: getUpdates: 500 Internal Server Error", ""},
		{"gateway", body(504, "<html>"), "telegram: getUpdates: 504 Gateway Timeout", ""},
		{"not JSON", body(200, `{"ok":tru`), "telegram: getUpdates: the answer is none of the Bot API's", ""},
		{"no list", body(200, `{"ok":true,"result":{}}`), "telegram: getUpdates: the answer is none of the Bot API's: no list of updates", ""},
		{"nothing", body(200, ``), "telegram: getUpdates: the answer is none of the Bot API's", ""},
		{"huge", func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, `{"ok":true,"result":["`+strings.Repeat("x", 9<<20))
		}, "telegram: getUpdates: the answer is larger than 8 MiB", ""},
		{"cut", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, `{"ok":true,"result":[`)
		}, "telegram: getUpdates: the answer broke off: unexpected EOF", ""},
		{"hung up", func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, "telegram: getUpdates: EOF", ""},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/"+r.URL.Path, http.StatusTemporaryRedirect)
		}, "telegram: getUpdates: 307 Temporary Redirect", ""},
		{"echoes the token", func(w http.ResponseWriter, r *http.Request) { refuse(w, 400, "what is "+r.URL.Path+"?") },
			"telegram: getUpdates: 400 what is /bot<token>/getUpdates?", ""},
		{"echoes it where a line is cut", func(w http.ResponseWriter, r *http.Request) {
			refuse(w, 400, strings.Repeat("x", 300-20)+secret)
		}, "telegram: getUpdates: 400 xxx", ""},
		{"null for a list", body(200, `{"ok":true,"result":null}`), "telegram: getUpdates: the answer is none of the Bot API's: no list", ""},
		{"echoes it escaped", func(w http.ResponseWriter, r *http.Request) {
			refuse(w, 400, "what is "+url.PathEscape(r.URL.Path)+"?")
		},
			"telegram: getUpdates: 400 what is %2Fbot<token>%2FgetUpdates?", ""},
		{"echoes it with its colon escaped", func(w http.ResponseWriter, r *http.Request) {
			refuse(w, 400, "what is "+strings.ReplaceAll(r.URL.Path, ":", "%3A")+"?")
		}, "telegram: getUpdates: 400 what is /bot<token>/getUpdates?", ""},
		{"echoes half of it", func(w http.ResponseWriter, r *http.Request) { refuse(w, 400, "what is "+r.URL.Path[:24]) },
			"telegram: getUpdates: 400 what is /bot<token>", ""},
		{"echoes half of it without HTTP", func(w http.ResponseWriter, r *http.Request) {
			c, _, _ := w.(http.Hijacker).Hijack()
			io.WriteString(c, r.URL.Path[20:]+"\r\n\r\n")
			c.Close()
		}, "telegram: getUpdates: ", ""},
		{"echoes it without HTTP", func(w http.ResponseWriter, r *http.Request) {
			c, _, _ := w.(http.Hijacker).Hijack()
			io.WriteString(c, r.URL.Path+"\r\n\r\n")
			c.Close()
		}, "telegram: getUpdates: ", ""},
		{"echoes it in a wrong type", body(200, `{"ok":true,"result":"`+secret+`"}`), "telegram: getUpdates: the answer is none of the Bot API's", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			api := newAPI(t)
			api.Config.ErrorLog = nil
			tr := bot(t, api.URL)
			cursor := begin(t, tr)
			api.push(text(1, 1, "kept"))
			api.breaks(func(method string, w http.ResponseWriter, r *http.Request) bool { tt.fault(w, r); return true })
			_, err := tr.Next(t.Context(), cursor)
			var d *chat.Degraded
			if !errors.As(err, &d) {
				t.Fatalf("%v", err)
			}
			if !strings.Contains(d.Reason, tt.reason) || !strings.Contains(d.Next, tt.next) || (d.Next == "") != (tt.next == "") {
				t.Errorf("reason %q, next %q", d.Reason, d.Next)
			}
			if s := spill(err); tellsPart(s) {
				t.Errorf("tells the token: %s", s)
			}
			api.breaks(nil)
			if b := next(t, tr, cursor); !slices.Equal(texts(b), []string{"kept"}) {
				t.Errorf("then: %+v", b)
			}
		})
	}
}

func TestDown(t *testing.T) {
	t.Parallel()
	down := httptest.NewServer(nil)
	down.Close()
	for _, api := range []string{down.URL, "https" + strings.TrimPrefix(newAPI(t).URL, "http"), "https://no-such-host.invalid"} {
		tr := bot(t, api)
		_, nerr := tr.Next(t.Context(), "")
		_, oerr := tr.Open(t.Context(), chat.Attachment{GUID: "F", Bytes: -1}, 10)
		var d *chat.Degraded
		if !errors.As(nerr, &d) || oerr == nil {
			t.Errorf("%s: %v, %v", api, nerr, oerr)
		}
		r := send(t, tr, chat.Outgoing{Chat: private, Text: "x"})
		if r.State != chat.Failed || !r.Again {
			t.Errorf("%s: %+v", api, r)
		}
		facts := fmt.Sprintf("%+v", tr.Check(t.Context()))
		if !strings.Contains(facts, "bot State:bad") && !strings.Contains(facts, "Name:bot State:bad") {
			t.Errorf("%s: %s", api, facts)
		}
		if s := spill(nerr) + spill(oerr) + r.Fact + facts; strings.Contains(s, secret) || strings.Contains(s, secret[8:]) {
			t.Errorf("tells the token: %s", s)
		}
	}
}

func TestHungServer(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	tr := bot(t, api.URL)
	api.breaks(func(_ string, _ http.ResponseWriter, r *http.Request) bool { hang(r); return true })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	testworld.ErrorIs(t, testworld.Err(tr.Next(ctx, "")), context.DeadlineExceeded, "Next")
	_, err := tr.Open(ctx, chat.Attachment{GUID: "F"}, 10)
	if err == nil || !strings.Contains(err.Error(), "did not answer in time") || strings.Contains(spill(err), secret) {
		t.Errorf("Open: %v", err)
	}
}

// Telegram is not asked again before the time that it wants.
func TestNextObeys(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	tr := bot(t, api.URL)
	cursor := begin(t, tr)
	api.breaks(func(_ string, w http.ResponseWriter, _ *http.Request) bool {
		say(w, 429, map[string]any{"ok": false, "error_code": 429, "parameters": map[string]any{"retry_after": 3600}})
		return true
	})
	before := api.count("getUpdates")
	tr.Next(t.Context(), cursor)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := tr.Next(ctx, cursor); !errors.Is(err, context.DeadlineExceeded) || api.count("getUpdates") != before+1 {
		t.Errorf("%v, asked %d times", err, api.count("getUpdates")-before)
	}
}

// Two that read the same bot: the one that came first is told.
func TestTwoReaders(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	cursor := begin(t, bot(t, api.URL))
	first := bot(t, api.URL, func(o *telegram.Options) { o.Poll = time.Minute })
	got := make(chan error, 1)
	go func() {
		_, err := first.Next(t.Context(), cursor)
		got <- err
	}()
	testworld.Wait(t, "a reader that waits", func() bool {
		api.mu.Lock()
		defer api.mu.Unlock()
		return api.poll != nil
	})
	next(t, bot(t, api.URL), cursor)
	err := <-got
	var d *chat.Degraded
	if !errors.As(err, &d) || !strings.Contains(d.Reason, "another program reads this bot's messages") {
		t.Errorf("%v", err)
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	tr := bot(t, api.URL)
	content := bytes.Repeat([]byte("x"), 100_000)
	api.files["F"] = content
	read := func(a chat.Attachment, max int64) (string, error) {
		r, err := tr.Open(t.Context(), a, max)
		if err != nil {
			return "", err
		}
		defer r.Close()
		data, err := io.ReadAll(r)
		return string(data), err
	}
	file := chat.Attachment{GUID: "F", Bytes: -1}
	if got, err := read(file, 100_000); err != nil || got != string(content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	for _, tt := range []struct {
		name string
		a    chat.Attachment
		max  int64
		want string
	}{
		{"too large", file, 99_999, "telegram: the file has 100000 bytes; at most 99999 are taken"},
		{"known to be", chat.Attachment{GUID: "F", Bytes: 100_000}, 10, "telegram: the file has 100000 bytes; at most 10 are taken"},
		{"missing", chat.Attachment{GUID: "F", Missing: "it is gone"}, 100, "telegram: it is gone"},
		{"unknown", chat.Attachment{GUID: "G", Bytes: -1}, 100, "telegram: getFile: 400 Bad Request: invalid file_id"},
	} {
		if _, err := read(tt.a, tt.max); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	for answer, want := range map[string]string{
		`{"file_path":"/var/lib/x"}`:  "telegram: the Bot API server runs in its local mode and hands out no files",
		`{"file_path":"../../etc/x"}`: "telegram: the Bot API does not say where the file is",
		`{"file_path":"a/../../x"}`:   "telegram: the Bot API does not say where the file is",
		`{}`:                          "telegram: the Bot API does not say where the file is",
		`{"file_path":"documents/F","file_size":1000000}`: "telegram: the file has 1000000 bytes; at most 200000 are taken",
		`{"file_path":"documents/F"}`:                     "telegram: the file is larger than what is taken", // as it lies about it
		`{"file_path":"a?b#c"}`:                           "telegram: file: 404 Not Found",
	} {
		api.breaks(func(method string, w http.ResponseWriter, r *http.Request) bool {
			if method == "getFile" {
				fmt.Fprintf(w, `{"ok":true,"result":%s}`, answer)
				return true
			}
			if method == "file" && r.URL.RawQuery == "" && strings.HasSuffix(r.URL.Path, "/F") {
				w.Write(make([]byte, 300_000))
				return true
			}
			return false
		})
		if _, err := read(file, 200_000); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", answer, err, want)
		}
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	dir := t.TempDir()
	for _, tt := range []struct {
		name, file, want, next string
	}{
		{"none", filepath.Join(dir, "none"), "the bot's token cannot be read: no such file", "chmod 600"},
		{"others can read it", tokenFile(t, secret, 0o644), "its mode is 0644, so others may read the bot's token", "chmod 600"},
		{"the group can", tokenFile(t, secret, 0o640), "its mode is 0640", "chmod 600"},
		{"a directory", dir, "not a regular file", ""},
		{"another form", tokenFile(t, "hunter2hunter2hunter2", 0o600), "does not hold a bot's token", "@BotFather"},
		{"two lines", tokenFile(t, secret+"\n"+secret, 0o600), "does not hold a bot's token", "@BotFather"},
		{"empty", tokenFile(t, "", 0o600), "does not hold a bot's token", "@BotFather"},
		{"long", tokenFile(t, "1:"+strings.Repeat("a", 1<<20), 0o600), "does not hold a bot's token", "@BotFather"},
	} {
		tr := bot(t, api.URL, func(o *telegram.Options) { o.TokenFile = tt.file })
		_, err := tr.Next(t.Context(), "")
		var d *chat.Degraded
		if !errors.As(err, &d) || !strings.Contains(d.Reason, tt.want) || !strings.Contains(d.Next, tt.next) {
			t.Errorf("%s: %v", tt.name, err)
		}
		facts := tr.Check(t.Context())
		if len(facts) != 1 || facts[0].State != chat.Bad || !strings.Contains(facts[0].Detail, tt.want) {
			t.Errorf("%s: %+v", tt.name, facts)
		}
		if s := spill(err); strings.Contains(s, secret) || strings.Contains(s, "hunter2") {
			t.Errorf("%s: tells what the file holds: %s", tt.name, s)
		}
	}
	// One that is put right counts at once, also behind a link of the owner's.
	file, link := tokenFile(t, secret, 0o644), filepath.Join(dir, "link")
	testworld.Must(t, os.Symlink(file, link))
	tr := bot(t, api.URL, func(o *telegram.Options) { o.TokenFile = link })
	testworld.Fails(t, testworld.Err(tr.Next(t.Context(), "")), "", "a file that others can read is used")
	testworld.Must(t, os.Chmod(file, 0o600))
	begin(t, tr)
}

func TestNew(t *testing.T) {
	t.Parallel()
	for api, want := range map[string]string{
		"": "", "https://api.example.org": "", "https://10.1.2.3:8081/": "", "http://127.0.0.1:8081": "", "http://[::1]:8081": "",
		"http://localhost:1": "", "http://192.168.0.9:8081": "", "http://[fd00::1]": "",
		"http://api.telegram.org": "would get the bot's token without encryption",
		"http://203.0.113.9":      "would get the bot's token without encryption",
		"http://nas.local":        "would get the bot's token without encryption",
		"http://0.0.0.0":          "would get the bot's token without encryption",
		"http://localhost.evil":   "would get the bot's token without encryption",
		"ftp://127.0.0.1":         "begins with https://", "api.telegram.org": "begins with https://", "https://": "begins with https://",
		"https://u:p@host": "without a user", "https://host/?a=b": "without a user", "://": "begins with https://",
	} {
		_, err := telegram.New(telegram.Options{TokenFile: "/x", API: api})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", api, err, want)
		}
	}
	testworld.Fails(t, testworld.Err(telegram.New(telegram.Options{})), "", "without a file of the token")
}

func TestCheck(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	tr := bot(t, api.URL)
	states := func() (s string) {
		for _, f := range tr.Check(t.Context()) {
			s += f.Name + "=" + string(f.State) + " "
		}
		return strings.TrimSpace(s)
	}
	testworld.Equal(t, states(), "token=ok bot=ok webhook=ok groups=ok first message=unchecked sending=unchecked")
	api.webhook = "https://elsewhere.example"
	facts := tr.Check(t.Context())
	if facts[2].State != chat.Bad || !strings.Contains(facts[2].Next, "deleteWebhook") || strings.Contains(fmt.Sprint(facts), secret) {
		t.Errorf("%+v", facts)
	}
	testworld.Equal(t, api.count("sendMessage"), 0, "sent")
	api.token = "other"
	testworld.Equal(t, states(), "token=ok bot=bad")
}
