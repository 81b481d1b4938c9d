package dashboard_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"netsky/dashboard"
	"netsky/internal/testworld"
)

// routes are all that a GET may ask for; a row of the security table that says
// "every route" means these.
var routes = []string{
	"/", "/agents/agent1", "/panes", "/tasks", "/tasks/x", "/messages", "/messages/x", "/sessions", "/sessions/x", "/logs", "/updates", "/find?q=agent1",
	"/user-message", "/static/netsky.css", "/static/netsky.js", "/static/session.js", "/static/icon.svg", "/static/plain.css", "/healthz", "/login", "/session", "/sign-out", "/events", "/ws", "/palette.css", "/nothing/here",
	"/api/snapshot", "/api/agents", "/api/approvals", "/api/pane/agent1", "/api/actors", "/api/actors/agent1",
	"/api/sessions", "/api/sessions/x", "/api/tasks", "/api/tasks/x", "/api/messages", "/api/messages/x",
	"/api/deliveries", "/api/deliveries/x", "/api/notes", "/api/notes/x", "/api/logs", "/api/logs/1", "/api/updates", "/api/timeline/agent1",
	"/api/user-message",
}

// Row 30: a Host that is not ours gets nothing, on every route, with a token
// and without.
func TestRow30Host(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, func(o *dashboard.Options) { o.Hosts = []string{"box.lan"} })
	_, port, _ := strings.Cut(w.addr, ":")
	for _, tt := range []struct {
		host string
		ok   bool
	}{
		{"evil.example", false},
		{"evil.example:" + port, false},
		{"127.0.0.1.evil.example", false},
		{"127.0.0.1.", false},
		{"127.0.0.1:", false},
		{"127.0.0.1:x", false},
		{"127.0.0.1:80:80", false},
		{"[::ffff:127.0.0.1]", false},
		{"[::ffff:127.0.0.1]:" + port, false},
		{"::1", false},
		{"127.1", false},
		{"0.0.0.0", false},
		{"localhost.evil.example", false},
		{"127.0.0.1:" + port, true},
		{"127.0.0.1", true},
		{"localhost:8000", true}, // the other end of ssh -L
		{"LOCALHOST", true},
		{"[::1]:" + port, true},
		{"box.lan:" + port, true},
	} {
		for _, path := range routes {
			r := w.request(t, "HEAD", path, "")
			r.Host = tt.host
			if got := mustAnswer(t, r).status; (got == http.StatusForbidden) == tt.ok {
				t.Errorf("Host %q, %s: %d", tt.host, path, got)
			}
		}
	}
	for name, request := range map[string]string{
		"missing":      "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n",
		"none at all":  "GET /healthz HTTP/1.0\r\n\r\n",
		"empty":        "GET /healthz HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n",
		"two":          "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
		"in the line":  "GET http://evil.example/healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
		"as a command": "CONNECT evil.example:80 HTTP/1.1\r\nHost: evil.example:80\r\nConnection: close\r\n\r\n",
	} {
		got := w.raw(t, request)
		if !strings.HasPrefix(got, "HTTP/1.1 400") && !strings.HasPrefix(got, "HTTP/1.1 403") && !strings.HasPrefix(got, "HTTP/1.0 403") {
			t.Errorf("Host %s: %.60q", name, got)
		}
	}
}

// Without the token nothing answers but /healthz, and that tells nothing.
func TestToken(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	cookie := w.login(t)
	for _, tt := range []struct {
		name string
		edit func(*http.Request)
		want int
	}{
		{"none", func(r *http.Request) {}, 401},
		{"wrong bearer", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+strings.Repeat("0", 64)) }, 401},
		{"half a bearer", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+w.token[:32]) }, 401},
		{"empty bearer", func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") }, 401},
		{"basic", func(r *http.Request) { r.SetBasicAuth("", w.token) }, 401},
		{"two bearers", func(r *http.Request) { r.Header["Authorization"] = []string{"Bearer " + w.token, "Bearer x"} }, 401},
		{"in the query", func(r *http.Request) { r.URL.RawQuery = "token=" + w.token }, 401},
		{"the token as a cookie", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookie.Name, Value: w.token}) }, 401},
		{"the cookie as a bearer", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+cookie.Value) }, 401},
		{"another home's cookie", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "netsky-0", Value: cookie.Value}) }, 401},
		{"cookie beside a wrong bearer", func(r *http.Request) {
			r.AddCookie(cookie)
			r.Header.Set("Authorization", "Bearer x")
		}, 401},
		{"bearer", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+w.token) }, 200},
		{"cookie", func(r *http.Request) { r.AddCookie(cookie) }, 200},
		{"cookie behind a stale one", func(r *http.Request) {
			r.AddCookie(&http.Cookie{Name: cookie.Name, Value: "old"})
			r.AddCookie(cookie)
		}, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := w.request(t, "GET", "/api/snapshot", "")
			r.Header.Del("Authorization")
			tt.edit(r)
			if a := mustAnswer(t, r); a.status != tt.want {
				t.Errorf("status = %d, want %d: %s", a.status, tt.want, a.body)
			}
		})
	}
	for _, path := range routes {
		r := w.request(t, "GET", path, "")
		r.Header.Del("Authorization")
		a := mustAnswer(t, r)
		if path == "/healthz" {
			testworld.Equal(t, a.body, "{\"status\":\"ok\"}\n", "%s tells", path)
		} else if want := map[string]int{"/login": 200, "/static/session.js": 200, "/static/icon.svg": 200, "/static/plain.css": 200, "/session": 405}[path]; a.status != max(want, 401) && a.status != want {
			t.Errorf("%s without a token: %d", path, a.status)
		}
		if strings.Contains(a.body, w.token) {
			t.Errorf("%s tells the token", path)
		}
	}
}

// Row 36: what more than this machine could reach is not served by mistake, and
// no page may be put into another's frame.
func TestRow36WideAndFraming(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	for _, path := range routes {
		for _, token := range []bool{true, false} {
			r := w.request(t, "HEAD", path, "")
			if !token {
				r.Header.Del("Authorization")
			}
			h := mustAnswer(t, r).header
			policy := h.Get("Content-Security-Policy")
			for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
				if !strings.Contains(policy, want) {
					t.Errorf("%s: no %s in the policy", path, want)
				}
			}
			if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
				t.Errorf("%s: policy %s", path, policy)
			}
			referrer := "no-referrer"
			if strings.HasPrefix(h.Get("Content-Type"), "text/html") {
				referrer = "same-origin" // a form's POST says its origin only then
			}
			for name, want := range map[string]string{
				"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": referrer,
				"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			} {
				testworld.Equal(t, h.Get(name), want, "%s: %s", path, name)
			}
			testworld.Equal(t, h.Get("Access-Control-Allow-Origin"), "", "%s: lets other origins read", path)
		}
	}
}

// What is logged holds no token and no text of a message.
func TestLogHoldsNoSecret(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	w := mustWorld(t, func(o *dashboard.Options) {
		o.Log = slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	w.login(t)
	if a := mustAnswer(t, w.request(t, "POST", "/api/user-message", `{"to":"agent0","text":"canary"}`)); a.status != 202 {
		t.Fatal(a)
	}
	w.get(t, "/api/messages?cursor=x")
	w.stop()
	if log := b.String(); strings.Contains(log, w.token) || strings.Contains(log, "canary") || log == "" {
		t.Errorf("log: %s", log)
	}
}
