package dashboard_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"netsky/dashboard"
	"netsky/internal/testworld"
)

// A visitor is a browser's tab, as the script plays it.
type visitor struct {
	ID, Key string
	cookie  *http.Cookie
	pass    string // by what the server knows it, after greet
}

// code is the code of a link.
func (w *world) code(tb testing.TB) string {
	tb.Helper()
	link := w.link(tb)
	u := testworld.Got(url.Parse(link))(tb)
	if u.Path != "/login" || len(u.Query().Get("code")) < 32 {
		tb.Fatalf("the link is %s", link)
	}
	return u.Query().Get("code")
}

// signIn signs a tab in, as the login page's script does.
func (w *world) signIn(tb testing.TB) *visitor {
	tb.Helper()
	a := w.postLogin(tb, fmt.Sprintf(`{"code":%q}`, w.code(tb)), "application/json")
	var t visitor
	testworld.Must(tb, json.Unmarshal([]byte(a.body), &t))
	t.cookie = mustCookie(tb, a)
	if a.status != 200 || len(t.ID) != 16 || len(t.Key) != 64 || strings.Contains(t.cookie.Value, t.Key) {
		tb.Fatalf("sign in: %d %s, cookie %v", a.status, a.body, t.cookie)
	}
	w.greet(tb, &t)
	return &t
}

// login signs in a browser and returns its cookie alone.
func (w *world) login(tb testing.TB) *http.Cookie { tb.Helper(); return w.signIn(tb).cookie }

func (w *world) postLogin(tb testing.TB, body, kind string) answer {
	tb.Helper()
	r := w.request(tb, "POST", "/login", body)
	r.Header.Del("Authorization")
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Origin", "http://"+w.addr)
	return mustAnswer(tb, r)
}

func mustCookie(tb testing.TB, a answer) *http.Cookie {
	tb.Helper()
	c := testworld.Got(http.ParseSetCookie(a.header.Get("Set-Cookie")))(tb)
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" {
		tb.Fatalf("cookie %v", c)
	}
	return &http.Cookie{Name: c.Name, Value: c.Value}
}

func (t *visitor) mac(words ...string) string {
	key, _ := hex.DecodeString(t.Key)
	m := hmac.New(sha256.New, key)
	m.Write([]byte(strings.Join(words, "\n")))
	return hex.EncodeToString(m.Sum(nil))
}

const nonce = "00112233445566778899aabbccddeeff"

type greeting struct{ State, Challenge, Proof, Tab string }

// hello says the first half of a greeting, and proves nothing.
func (w *world) hello(tb testing.TB, t *visitor) greeting {
	tb.Helper()
	r := w.request(tb, "POST", "/session", fmt.Sprintf(`{"id":%q,"nonce":%q}`, t.ID, nonce))
	r.Header.Del("Authorization")
	a := mustAnswer(tb, r)
	var g greeting
	testworld.Must(tb, json.Unmarshal([]byte(a.body), &g))
	if a.status != 200 || a.header.Get("Set-Cookie") != "" || g.Tab != "" {
		tb.Fatalf("hello: %d %s", a.status, a.body)
	}
	return g
}

func (w *world) prove(tb testing.TB, t *visitor, challenge, proof string) answer {
	tb.Helper()
	r := w.request(tb, "POST", "/session", fmt.Sprintf(`{"id":%q,"nonce":%q,"challenge":%q,"proof":%q}`, t.ID, nonce, challenge, proof))
	r.Header.Del("Authorization")
	return mustAnswer(tb, r)
}

// greet has server and tab prove to each other who they are.
func (w *world) greet(tb testing.TB, t *visitor) {
	tb.Helper()
	g := w.hello(tb, t)
	if g.State != "known" || g.Proof != t.mac("server", nonce, g.Challenge, "known") {
		tb.Fatalf("hello: %+v", g)
	}
	a := w.prove(tb, t, g.Challenge, t.mac("tab", nonce, g.Challenge))
	var second greeting
	testworld.Must(tb, json.Unmarshal([]byte(a.body), &second))
	if a.status != 200 || second.Tab == "" {
		tb.Fatalf("proof: %d %s", a.status, a.body)
	}
	t.cookie, t.pass = mustCookie(tb, a), second.Tab
}

// as makes a request one of the tab's.
func (t *visitor) as(r *http.Request) {
	r.Header.Del("Authorization")
	r.AddCookie(t.cookie)
	r.Header.Set("Netsky-Tab", t.pass)
}

// again serves the same home on, as the next daemon does.
func (w *world) again(tb testing.TB) {
	tb.Helper()
	w.stop()
	w.serve(tb, dashboard.Options{Home: w.home, Records: func() (dashboard.Reader, error) { return w.db, nil },
		Agents: w.agents, Panes: w.panes, Bus: w.bus, Token: w.token, Version: "v1"})
}

// A tab that has proved itself signs its browser out whatever became of the
// cookie; without a cookie and without a pass nobody is signed out.
func TestSignOutByPass(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	old := w.signIn(t).cookie
	w.again(t)
	v := w.signIn(t)
	n := len(w.srv.Browsers())
	for _, tt := range []struct {
		name, pass, origin string
		status, left       int
	}{
		{"no pass", "", "http://" + w.addr, 401, n},
		{"a pass of nobody's", v.ID + ".00", "http://" + w.addr, 401, n},
		{"no origin", v.pass, "", 403, n},
		{"the pass", v.pass, "http://" + w.addr, 303, n - 1},
		{"once more", v.pass, "http://" + w.addr, 401, n - 1},
	} {
		r := w.request(t, "POST", "/sign-out", "")
		r.Header.Del("Authorization")
		r.AddCookie(old)
		r.Header.Set("Netsky-Tab", tt.pass)
		if tt.origin != "" {
			r.Header.Set("Origin", tt.origin)
		}
		if got := mustAnswer(t, r).status; got != tt.status || len(w.srv.Browsers()) != tt.left {
			t.Errorf("%s: %d and %d browsers, want %d and %d", tt.name, got, len(w.srv.Browsers()), tt.status, tt.left)
		}
	}
}

// The pages for who is not signed in have their own style, say what to type, and
// lead to no page that would be refused too.
func TestPlainPages(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	for path, want := range map[string]string{"/": "<h1>You are signed out</h1>", "/login": "<h1>Sign in to netsky</h1>"} {
		r := w.request(t, "GET", path, "")
		r.Header.Del("Authorization")
		r.Header.Set("Accept", "text/html")
		body := mustAnswer(t, r).body
		for _, want := range []string{want, `href="/static/plain.css"`, `href="/static/icon.svg"`, "<code>netsky dashboard</code>"} {
			testworld.Contains(t, body, want, "%s", path)
		}
		if strings.ContainsAny(body, "`") || strings.Contains(body, `href="/"`) {
			t.Errorf("%s: %s", path, body)
		}
	}
}
