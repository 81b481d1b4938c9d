package dashboard_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"netsky/dashboard"
	"netsky/dashboard/access"
	"netsky/internal/testworld"
)

// What a browser sends is worth nothing to the next server: only who has the key
// goes on with it, and the key is never sent.
func TestNextServer(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	v := w.signIn(t)
	old := *v
	g := w.hello(t, v)
	shown := v.mac("tab", nonce, g.Challenge)
	try := func(v visitor) (read, write int) {
		t.Helper()
		r := w.request(t, "GET", "/api/snapshot", "")
		v.as(r)
		read = mustAnswer(t, r).status
		r = w.request(t, "POST", "/api/user-message", `{"to":"agent0","text":"x"}`)
		v.as(r)
		r.Header.Set("Origin", "http://"+w.addr)
		return read, mustAnswer(t, r).status
	}
	if read, write := try(*v); read != 200 || write != 202 {
		t.Fatalf("signed in: %d, %d", read, write)
	}
	w.again(t)
	if read, write := try(old); read != 401 || write != 401 {
		t.Errorf("what the last server was shown, shown to the next: %d, %d", read, write)
	}
	if a := w.prove(t, v, g.Challenge, shown); a.status != 401 || a.header.Get("Set-Cookie") != "" {
		t.Errorf("a proof for the last server, shown to the next: %d", a.status)
	}
	w.greet(t, v)
	if read, write := try(*v); read != 200 || write != 202 {
		t.Errorf("with the key: %d, %d", read, write)
	}
	mixed := *v
	if mixed.pass = old.pass; true {
		if _, write := try(mixed); write != 403 {
			t.Errorf("with the cookie and the last server's pass: %d", write)
		}
	}
	// A server at another address has other keys: nobody between can carry proofs.
	w.stop()
	held := testworld.Got(net.Listen("tcp4", w.addr))(t)
	defer held.Close()
	w.addr = ""
	w.again(t)
	if g := w.hello(t, v); g.Proof == v.mac("server", nonce, g.Challenge, g.State) {
		t.Error("a server on another port proves to be the one of the old")
	}
	g = w.hello(t, v)
	testworld.Equal(t, w.prove(t, v, g.Challenge, v.mac("tab", nonce, g.Challenge)).status, 401, "a tab of the old port proves itself to the new")
}

// A wrong proof, an old challenge and one for another nonce give nothing.
func TestProofRefused(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	w := mustWorld(t, func(o *dashboard.Options) {
		o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	})
	v := w.signIn(t)
	g := w.hello(t, v)
	for name, a := range map[string]answer{
		"no key":            w.prove(t, v, g.Challenge, strings.Repeat("0", 64)),
		"the server's own":  w.prove(t, v, g.Challenge, g.Proof),
		"own challenge":     w.prove(t, v, "1."+strings.Repeat("0", 64), v.mac("tab", nonce, "1."+strings.Repeat("0", 64))),
		"another's id":      w.prove(t, &visitor{ID: "0123456789abcdef", Key: v.Key}, g.Challenge, v.mac("tab", nonce, g.Challenge)),
		"for another nonce": w.prove(t, v, g.Challenge, v.mac("tab", "00"+nonce, g.Challenge)),
	} {
		if a.status != 401 || a.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	mu.Lock()
	now = now.Add(31 * time.Second)
	mu.Unlock()
	testworld.Equal(t, w.prove(t, v, g.Challenge, v.mac("tab", nonce, g.Challenge)).status, 401, "an old challenge")
	for _, body := range []string{`{}`, `{"id":"x","nonce":"y"}`, `{"id":"0123456789abcdef","nonce":"00"}`, `{"id":1}`, `[]`, strings.Repeat("x", 9000)} {
		r := w.request(t, "POST", "/session", body)
		r.Header.Del("Authorization")
		testworld.Equal(t, mustAnswer(t, r).status, 400, "%.40s", body)
	}
}

// The answers to a tab prove that they are the server's, for its nonce.
func TestAnswersProved(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	v := w.signIn(t)
	for path, status := range map[string]int{"/": 200, "/api/snapshot": 200, "/healthz": 200, "/messages/x": 404} {
		r := w.request(t, "GET", path, "")
		v.as(r)
		r.Header.Set("Netsky-Nonce", nonce)
		a := mustAnswer(t, r)
		sum := sha256.Sum256([]byte(a.body))
		want := v.mac("answer", nonce, strconv.Itoa(status), hex.EncodeToString(sum[:]))
		if a.status != status || a.header.Get("Netsky-Proof") != want {
			t.Errorf("%s: %d, proof %q, want %q", path, a.status, a.header.Get("Netsky-Proof"), want)
		}
		r = w.request(t, "GET", path, "") // a tab that has not proved itself is proved nothing
		r.Header.Set("Netsky-Nonce", nonce)
		r.Header.Set("Netsky-Tab", v.ID+"."+strings.Repeat("0", 64))
		testworld.Equal(t, mustAnswer(t, r).header.Get("Netsky-Proof"), "", "%s: proof for nobody", path)
	}
	r := w.request(t, "GET", "/events", "")
	v.as(r)
	r.Header.Set("Netsky-Nonce", nonce)
	resp, err := http.DefaultClient.Do(r)
	testworld.Must(t, err)
	resp.Body.Close()
	testworld.Equal(t, resp.Header.Get("Netsky-Proof"), v.mac("stream", nonce), "SSE: proof")
	c, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws://"+w.addr+"/ws", http.Header{
		"Cookie": {v.cookie.String()}, "Origin": {"http://" + w.addr},
		"Sec-Websocket-Protocol": {"netsky, netsky-tab." + v.pass + ", netsky-nonce." + nonce}})
	testworld.Must(t, err)
	defer c.Close()
	var first struct{ Proof string }
	testworld.Must(t, c.ReadJSON(&first))
	if first.Proof != v.mac("stream", nonce) || c.Subprotocol() != "netsky" {
		t.Errorf("websocket: proof %q, protocol %q", first.Proof, c.Subprotocol())
	}
}

// Another user's process is told nothing, whatever it shows.
func TestPeerUser(t *testing.T) {
	t.Parallel()
	uid, known, perr := os.Getuid(), true, error(nil)
	var mu sync.Mutex
	w := mustWorld(t, func(o *dashboard.Options) {
		o.Peer = func(remote, local netip.AddrPort) (int, bool, error) {
			mu.Lock()
			defer mu.Unlock()
			return uid, known, perr
		}
	})
	v := w.signIn(t)
	for _, tt := range []struct {
		name  string
		uid   int
		known bool
		err   error
		want  int
	}{
		{"the owner", os.Getuid(), true, nil, 200},
		{"root", 0, true, nil, 200},
		{"another", 1234567, true, nil, 403},
		{"gone", 0, true, errors.New("closed"), 403},
		{"a system that does not say", 0, false, nil, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mu.Lock()
			uid, known, perr = tt.uid, tt.known, tt.err
			mu.Unlock()
			for _, path := range []string{"/", "/api/snapshot", "/login"} {
				http.DefaultTransport.(*http.Transport).CloseIdleConnections() // it is asked once a connection
				r := w.request(t, "GET", path, "")
				if path == "/" {
					v.as(r)
				}
				if a := mustAnswer(t, r); a.status != tt.want {
					t.Errorf("%s: %d, want %d: %s", path, a.status, tt.want, a.body)
				}
			}
			http.DefaultTransport.(*http.Transport).CloseIdleConnections()
			testworld.Equal(t, w.get(t, "/healthz").status, 200, "/healthz")
		})
	}
}

// A browser that has signed in by the form has a cookie alone. It may write where
// the kernel says that it is the owner's, and can only look elsewhere.
func TestWithoutScript(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{"known": true, "unknown": false} {
		t.Run(name, func(t *testing.T) {
			w := mustWorld(t, func(o *dashboard.Options) {
				o.Peer = func(netip.AddrPort, netip.AddrPort) (int, bool, error) { return os.Getuid(), known, nil }
			})
			a := w.postLogin(t, "code="+w.code(t), "application/x-www-form-urlencoded")
			if a.status != 303 || a.header.Get("Location") != "/" {
				t.Fatalf("login: %d %s", a.status, a.body)
			}
			cookie := mustCookie(t, a)
			as := func(r *http.Request) {
				r.Header.Del("Authorization")
				r.AddCookie(cookie)
				r.Header.Set("Origin", "http://"+w.addr)
			}
			want := map[bool]int{true: 303, false: 403}[known]
			if a := w.form(t, url.Values{"to": {"agent0"}, "text": {"x"}, "id": {""}}, as); a.status != want {
				t.Errorf("the form: %d, want %d: %s", a.status, want, a.body)
			}
			r := w.request(t, "GET", "/messages", "")
			as(r)
			testworld.Equal(t, mustAnswer(t, r).status, 200, "looking")
		})
	}
}

// A link's code signs one browser in, for five minutes; to look at the link does
// not use it up. Wrong ones are refused, logged at a rate, and told to come later.
func TestCode(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	var log syncBuffer
	w := mustWorld(t, func(o *dashboard.Options) {
		o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	code := w.code(t)
	for range 3 {
		r := w.request(t, "GET", "/login?code="+code, "")
		r.Header.Del("Authorization")
		if a := mustAnswer(t, r); a.status != 200 || !strings.Contains(a.body, code) || a.header.Get("Set-Cookie") != "" {
			t.Fatalf("a look at the link: %d", a.status)
		}
	}
	body := `{"code":"` + code + `"}`
	in := w.postLogin(t, body, "application/json")
	if in.status != 200 {
		t.Fatalf("%d %s", in.status, in.body)
	}
	cookie, _, _ := strings.Cut(in.header.Get("Set-Cookie"), ";")
	for _, given := range []string{cookie, "", cookie + "0"} { // the link once more: it leads on who is signed in, and nobody else
		r := w.request(t, "GET", "/login?code="+code, "")
		r.Header.Del("Authorization")
		r.Header.Set("Cookie", given)
		a := mustAnswer(t, r)
		if on := strings.Contains(a.body, `This browser is already signed in: <a href="/">`); a.status != 200 || on != (given == cookie) {
			t.Errorf("the used link with cookie %q: %d, leads on: %v", given, a.status, on)
		}
	}
	late := w.code(t)
	mu.Lock()
	now = now.Add(5 * time.Minute)
	mu.Unlock()
	for name, body := range map[string]string{"used": body, "late": `{"code":"` + late + `"}`, "none": `{"code":""}`, "the token": `{"code":"` + w.token + `"}`} {
		if a := w.postLogin(t, body, "application/json"); a.status != 401 || a.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d", name, a.status)
		}
	}
	if a := w.postLogin(t, "code=x", "application/x-www-form-urlencoded"); a.status != 401 || !strings.Contains(a.body, "netsky dashboard") {
		t.Errorf("by the form: %d %s", a.status, a.body)
	}
	testworld.Equal(t, w.postLogin(t, body, "text/plain").status, 415, "text/plain")
	last := answer{}
	for range 30 {
		r := w.request(t, "GET", "/api/snapshot", "")
		r.Header.Set("Authorization", "Bearer "+strings.Repeat("0", 64))
		last = mustAnswer(t, r)
	}
	if last.status != 429 || last.header.Get("Retry-After") == "" {
		t.Errorf("the 35th wrong secret: %d", last.status)
	}
	testworld.Equal(t, w.get(t, "/api/snapshot").status, 200, "the right token, after wrong ones")
	if n := strings.Count(log.String(), "refused"); n < 1 || n > 2 {
		t.Errorf("logged %d times:\n%s", n, log.String())
	}
	mu.Lock()
	now = now.Add(10 * time.Second)
	mu.Unlock()
	w.postLogin(t, body, "application/json")
	testworld.Contains(t, log.String(), "times=3", "the log does not count what it left out")
	if strings.Contains(log.String(), code) || strings.Contains(log.String(), w.token) {
		t.Errorf("a secret is logged:\n%s", log.String())
	}
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}
func (b *syncBuffer) String() string { b.mu.Lock(); defer b.mu.Unlock(); return b.b.String() }

// Browsers are listed, over a restart too, and signed out with all that they
// follow: one, all, by the page's button, by another token.
func TestSignOut(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	follow := func(v *visitor) (ended func()) {
		t.Helper()
		r := w.request(t, "GET", "/events", "")
		v.as(r)
		resp, err := http.DefaultClient.Do(r)
		testworld.Must(t, err)
		c, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws://"+w.addr+"/ws",
			http.Header{"Cookie": {v.cookie.String()}, "Origin": {"http://" + w.addr}, "Netsky-Tab": {v.pass}})
		testworld.Must(t, err)
		late := time.AfterFunc(testworld.Patience, func() { resp.Body.Close(); c.Close(); t.Error("a stream goes on") })
		return func() {
			t.Helper()
			defer late.Stop()
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			for err = nil; err == nil; {
				_, _, err = c.ReadMessage()
			}
			c.Close()
			r := w.request(t, "GET", "/", "")
			v.as(r)
			testworld.Equal(t, mustAnswer(t, r).status, 401, "signed out, and")
		}
	}
	a, b := w.signIn(t), w.signIn(t)
	ended := follow(a)
	if n, err := w.srv.SignOut(a.ID); n != 1 || err != nil {
		t.Fatalf("SignOut = %d, %v", n, err)
	}
	ended()
	if g := w.hello(t, a); g.State != "gone" || g.Proof != a.mac("server", nonce, g.Challenge, "gone") {
		t.Errorf("it is told %+v", g)
	}
	w.again(t)
	if list := w.srv.Browsers(); len(list) != 1 || list[0].ID != b.ID || list[0].Name == "" || list[0].Since == 0 {
		t.Fatalf("Browsers = %+v", list)
	}
	w.greet(t, b)
	ended = follow(b)
	r := w.request(t, "POST", "/sign-out", "")
	r.Header.Del("Authorization")
	r.AddCookie(b.cookie)
	testworld.Equal(t, mustAnswer(t, r).status, 403, "the button, from nowhere")
	r = w.request(t, "POST", "/sign-out", "")
	r.Header.Del("Authorization")
	r.AddCookie(b.cookie)
	r.Header.Set("Origin", "http://"+w.addr)
	testworld.Equal(t, mustAnswer(t, r).status, 303, "the button")
	ended()
	c := w.signIn(t)
	ended = follow(c)
	if n, err := w.srv.SignOut(""); n != 1 || err != nil || len(w.srv.Browsers()) != 0 {
		t.Errorf("SignOut of all = %d, %v", n, err)
	}
	ended()

	d := w.signIn(t)
	ended = follow(d)
	code := w.code(t)
	testworld.Must(t, w.srv.Rotate())
	ended()
	testworld.Equal(t, w.get(t, "/api/snapshot").status, 401, "the last token")
	testworld.Equal(t, w.postLogin(t, `{"code":"`+code+`"}`, "application/json").status, 401, "a code from before")
	var err error
	w.token, err = access.Token(w.home)
	testworld.Must(t, err)
	testworld.Equal(t, w.get(t, "/api/snapshot").status, 200, "the new token")
}

// A token whose file is gone, or was open to others, is replaced when a link is
// asked for: the link is good, scripts find the new one, and it is said.
func TestTokenReplaced(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(path string) error{
		"removed": os.Remove,
		"open":    func(path string) error { return os.Chmod(path, 0o644) },
		"changed": func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("n", 40)+"\n"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			w := mustWorld(t, nil)
			before := w.signIn(t)
			testworld.Must(t, spoil(w.home.Path("run/token")))
			l := testworld.Got(w.srv.Link("http://" + w.addr))(t)
			if !l.Renewed {
				t.Error("it is not said that there is another token")
			}
			old := w.token
			w.token = testworld.Got(access.Token(w.home))(t)
			if a := w.get(t, "/api/snapshot"); a.status != 200 || w.token == old {
				t.Errorf("the token in the file: %d", a.status)
			}
			r := w.request(t, "GET", "/", "")
			before.as(r)
			testworld.Equal(t, mustAnswer(t, r).status, 401, "who was signed in")
			u, _ := url.Parse(l.URL)
			testworld.Equal(t, w.postLogin(t, `{"code":"`+u.Query().Get("code")+`"}`, "application/json").status, 200, "the link")
			if l, err := w.srv.Link("http://" + w.addr); err != nil || l.Renewed {
				t.Errorf("another link: %+v, %v", l, err)
			}
		})
	}
}

// A signed-in browser that follows another link stays the browser it is, so that
// its other tabs do; one that was not seen for a month is signed out.
func TestBrowserStays(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	w := mustWorld(t, func(o *dashboard.Options) {
		o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	})
	v := w.signIn(t)
	r := w.request(t, "POST", "/login", `{"code":"`+w.code(t)+`"}`)
	v.as(r)
	r.Header.Set("Origin", "http://"+w.addr)
	var again visitor
	a := mustAnswer(t, r)
	testworld.Must(t, json.Unmarshal([]byte(a.body), &again))
	if again.ID != v.ID || again.Key != v.Key || len(w.srv.Browsers()) != 1 {
		t.Errorf("it is %s, was %s", again.ID, v.ID)
	}
	data := testworld.Got(os.ReadFile(w.home.Path("state/dashboard.json")))(t)
	if strings.Contains(string(data), v.Key) || strings.Contains(string(data), w.token) {
		t.Errorf("a secret is on disk: %s", data)
	}
	mu.Lock()
	now = now.AddDate(0, 0, 31)
	mu.Unlock()
	if g := w.hello(t, v); g.State != "gone" || len(w.srv.Browsers()) != 0 {
		t.Errorf("after a month: %s", g.State)
	}
}
