package attention_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"netsky/attention"
	"netsky/internal/testworld"
)

// TestSend: the first way that takes an alert is the only one that gets it.
func TestSend(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		command string // sh -c
		status  int    // of the webhook; 0: none
		by      string // "": it fails
		posts   int32
	}{
		{"command", `printf '%s|%s' "$NETSKY_SUBJECT" "$NETSKY_BODY" >"$OUT"`, 200, "command sh", 0},
		{"command fails", `echo no modem >&2; exit 3`, 204, "webhook", 1},
		{"webhook alone", "", 200, "webhook", 1},
		{"webhook fails", "", 500, "", 3},
		{"webhook redirects", "", 302, "", 3},
		{"all fail", "exit 1", 403, "", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := testworld.Home(t)
			var posts atomic.Int32
			var got map[string]string
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				posts.Add(1)
				data, err := io.ReadAll(r.Body)
				if err := errors.Join(err, json.Unmarshal(data, &got)); err != nil {
					t.Error(err)
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tt.status)
			}))
			defer srv.Close()
			out := filepath.Join(t.TempDir(), "out")
			w := attention.Ways{Env: append(os.Environ(), "OUT="+out, "AGENT_N=3")}
			if tt.command != "" {
				w.Command = []string{"sh", "-c", tt.command + `; test -z "$AGENT_N"`}
			}
			if tt.status != 0 {
				w.Webhook = srv.URL + "/secret"
			}
			by, err := w.Send(t.Context(), h, attention.Alert{Subject: "agent1\nwaits", Body: "at a \x1b[31mdialog"})
			if by != tt.by || (err == nil) != (tt.by != "") || posts.Load() != tt.posts {
				t.Fatalf("Send = %q, %v after %d posts; want %q, %d", by, err, posts.Load(), tt.by, tt.posts)
			}
			failed, ferr := attention.Failed(h)
			if ferr != nil || (len(failed) == 1) != (tt.by == "") {
				t.Errorf("Failed = %v, %v", failed, ferr)
			}
			switch tt.by {
			case "command sh":
				if data, _ := os.ReadFile(out); string(data) != "agent1 waits|at a \\x1b[31mdialog" {
					t.Errorf("the command got %q", data)
				}
			case "webhook":
				if got["subject"] != "agent1 waits" || got["body"] != "at a \\x1b[31mdialog" {
					t.Errorf("posted %q", got)
				}
			case "":
				if strings.Contains(err.Error(), "secret") || !strings.Contains(failed[0].String(), `about "agent1 waits"`) {
					t.Errorf("error %v; failure %s", err, failed[0])
				}
				w = attention.Ways{Command: []string{"true"}, Env: os.Environ()}
				testworld.Got(w.Send(t.Context(), h, attention.Alert{Subject: "again"}))(t)
				testworld.Len(t, testworld.Got(attention.Failed(h))(t), 0, "after a success")
			}
		})
	}
}

func TestNone(t *testing.T) {
	t.Parallel()
	testworld.ErrorIs(t, testworld.Err((attention.Ways{}).Send(t.Context(), testworld.Home(t), attention.Alert{Subject: "x"})), attention.ErrNone, "Send")
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for url, ok := range map[string]bool{
		"https://example.org/hook": true, "http://127.0.0.1:8080/x": true, "http://localhost/x": true, "http://[::1]:1/": true,
		"http://example.org/": false, "http://127.0.0.1.example.org/": false, "ftp://example.org/": false, "example.org": false, "": false, "https://": false, "%": false,
	} {
		if err := attention.CheckURL(url); (err == nil) != ok {
			t.Errorf("CheckURL(%q) = %v", url, err)
		}
	}
}
