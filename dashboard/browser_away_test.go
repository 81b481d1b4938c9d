//go:build live

package dashboard_test

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/view"
)

// A squatter listens where a server was. It answers all that a page asks for as
// well as it can, and keeps every word.
type squatter struct {
	mu    sync.Mutex
	heard []*http.Request
	words strings.Builder
}

func squat(tb testing.TB, addr string) (*squatter, *http.Server) {
	tb.Helper()
	s := &squatter{}
	l := testworld.Got(net.Listen("tcp4", addr))(tb)
	srv := &http.Server{Handler: s}
	go srv.Serve(l)
	tb.Cleanup(func() { srv.Close() })
	return s, srv
}

const planted = `<!doctype html><title>planted</title><div class="errors" data-live="errors"></div><main data-live="main" id="main">planted</main>`

func (s *squatter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.heard = append(s.heard, r)
	s.words.Write(body)
	for k, v := range r.Header {
		fmt.Fprintln(&s.words, k, v)
	}
	fmt.Fprintln(&s.words, r.URL)
	s.mu.Unlock()
	w.Header().Set("Netsky-Proof", strings.Repeat("0", 64))
	switch {
	case r.URL.Path == "/ws":
		c, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		key := r.Header.Get("Sec-WebSocket-Key")
		fmt.Fprintf(buf, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: netsky\r\nSec-WebSocket-Accept: %s\r\n\r\n", acceptKey(key))
		event := `{"key":"hello","data":{"version":"planted"}}`
		buf.Write(append([]byte{0x81, byte(len(event))}, event...))
		buf.Flush()
		io.Copy(io.Discard, bufio.NewReader(c))
	case r.URL.Path == "/session":
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"state":"known","challenge":"1.0","proof":"`+strings.Repeat("0", 64)+`","tab":"0.0"}`)
	case r.Method == "POST":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(202)
		io.WriteString(w, `{"id":"web-1","to":"agent0","state":"queued"}`)
	default:
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, planted)
	}
}

func (s *squatter) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*http.Request(nil), s.heard...)
}

// Whoever takes the port of a server that has ended gets nothing from an open
// page that the next server would accept, and shows nothing on it; the page is
// grey meanwhile, and goes on with the next server by itself.
func TestBrowserSquatter(t *testing.T) {
	t.Parallel()
	w, l := mustLook(t)
	l.live()
	key := eval[string](l, `JSON.parse(sessionStorage.getItem("netsky")).key`)
	first := w.addr
	w.stop()
	s, squatting := squat(t, first)
	// The page asks again and again; each way of its is tried: what follows, what
	// fetches the page, what sends.
	testworld.Wait(t, "the page asks", func() bool { return len(s.requests()) > 1 })
	l.waits(`document.querySelector("#link").textContent.startsWith("as of ") && document.documentElement.classList.contains("away-server")`)
	l.waits(`document.querySelector(".errors").innerText.includes("not the netsky that this tab was signed in to")`)
	l.typeIn("#text", "canary")
	eval[any](l, `document.querySelector(".say").requestSubmit(), dispatchEvent(new Event("focus")), null`)
	l.waits(`document.querySelector("#answer").textContent.includes("not the netsky")`)
	before := len(s.requests())
	testworld.Wait(t, "the page asks on", func() bool { return len(s.requests()) > before+2 })
	if got := l.text("body"); strings.Contains(got, "planted") || !strings.Contains(got, "agent1") {
		t.Errorf("the page shows %s", got)
	}
	s.mu.Lock()
	heard := s.words.String()
	s.mu.Unlock()
	for what, secret := range map[string]string{"the key": key, "the token": w.token, "the owner's words": "canary"} {
		if strings.Contains(heard, secret) {
			t.Errorf("%s was sent to the squatter", what)
		}
	}
	squatting.Close()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	w.again(t)
	if w.addr != first {
		t.Fatalf("the next server is at %s", w.addr)
	}
	l.live()
	l.waits(`!document.documentElement.classList.contains("away-server") && !document.querySelector("#why-away")`)

	// Each request that the squatter has, and each of its parts with each path.
	said := s.requests()
	for _, old := range said {
		for _, path := range []string{old.URL.RequestURI(), "/", "/api/snapshot", "/events", "/api/user-message"} {
			for _, method := range []string{"GET", "POST"} {
				r := w.request(t, method, path, "")
				if method == "POST" {
					r = w.request(t, method, path, `{"to":"agent0","text":"stolen"}`)
				}
				r.Header = old.Header.Clone()
				r.Header.Set("Origin", "http://"+w.addr)
				r.Header.Set("Content-Type", "application/json")
				if a := mustAnswer(t, r); a.status < 400 || a.header.Get("Set-Cookie") != "" {
					t.Errorf("%s %s with what the squatter has: %d", method, path, a.status)
				}
			}
		}
	}
	testworld.Equal(t, len(w.inbox(t, "agent0")), 0, "messages were queued")
	// And it works on.
	eval[any](l, `document.querySelector(".say").requestSubmit(), null`)
	l.waits(`document.querySelector("#answer").textContent.includes("waits in its inbox")`)
}

// A tab that was opened by hand has the cookie alone: it is given the key by
// another tab of the browser, else it can look and says so.
func TestBrowserSecondTab(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, slowly)
	b := mustBrowser(t)
	one := b.look(t, w)
	one.live()
	two := b.open(t, w)
	two.open("/messages")
	two.live()
	testworld.Contains(t, eval[string](two, `sessionStorage.getItem("netsky")`), `"key"`, "the second tab")
	one.goTo("about:blank")
	two.goTo("about:blank")
	three := b.open(t, w)
	three.open("/messages")
	three.waits(`document.querySelector("#why-away")?.textContent.includes("read-only")`)
	three.open("/")
	three.typeIn("#text", "from where?")
	eval[any](three, `document.querySelector(".say").requestSubmit(), null`)
	three.waits(`document.querySelector("#answer").textContent.includes("read-only")`)
	testworld.Equal(t, len(w.inbox(t, "agent0")), 0, "messages were queued")
	three.clean("Failed to load resource")
}

// A page that is opened when the daemon has been started anew is signed in again
// by its tab; the button signs out all tabs.
func TestBrowserSignOut(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, slowly)
	b := mustBrowser(t)
	one := b.look(t, w)
	one.live()
	two := b.open(t, w)
	two.open("/messages")
	two.live()
	w.again(t)
	one.open("/logs") // with a cookie of the last server's
	one.live()
	two.live()
	one.click(".sign-out button")
	one.waits(`location.pathname === "/login"`)
	two.waits(`document.querySelector("#why-away")?.textContent.includes("signed out")`)
	testworld.Equal(t, eval[string](two, `String(sessionStorage.getItem("netsky"))`), "null", "the other tab has")
	two.open("/")
	two.waits(`document.body.innerText.includes("not signed in")`)
	// A used link, opened again from the history, says so.
	u := testworld.Got(url.Parse(w.link(t)))(t)
	one.goTo(u.String())
	one.waits(`location.pathname === "/"`)
	one.live()
	two.goTo(u.String())
	two.waits(`document.querySelector("#why").textContent.includes("has been used")`)
}

// A sign-out that nobody has answered is none: it says so and the tab keeps its
// key, by which the next daemon signs it out.
func TestBrowserSignOutAway(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, slowly)
	l := mustBrowser(t).look(t, w)
	l.live()
	w.stop()
	l.click(".sign-out button")
	l.waits(`document.querySelector(".sign-out .why-not")?.innerText.includes("Not signed out: netsky does not answer")`)
	testworld.Contains(t, eval[string](l, `String(sessionStorage.getItem("netsky"))`), `"key"`, "the tab")
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	w.again(t)
	l.waits(`!document.querySelector(".sign-out button").disabled`)
	l.click(".sign-out button")
	l.waits(`location.pathname === "/login"`)
	if got := eval[string](l, `String(sessionStorage.getItem("netsky"))`); got != "null" || len(w.srv.Browsers()) != 0 {
		t.Errorf("signed out, the tab has %s and %d browsers are signed in", got, len(w.srv.Browsers()))
	}
}

// A tab that all browsers were signed out of says that this may be so. It takes the
// key of a tab that has been signed in anew only as its page is loaded: later it
// can't be known whose key that is.
func TestBrowserRotate(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, slowly)
	b := mustBrowser(t)
	one := b.look(t, w)
	one.live()
	old := eval[string](one, `sessionStorage.getItem("netsky")`)
	testworld.Must(t, w.srv.Rotate())
	one.waits(`document.querySelector("#why-away")?.textContent.includes("signed out with --rotate")`)
	testworld.Equal(t, eval[string](one, `sessionStorage.getItem("netsky")`), old, "the tab has")
	two := b.look(t, w)
	two.live()
	one.open("/logs")
	one.live()
	one.waits(`!document.querySelector("#why-away")`)
	if a, b := eval[string](one, `sessionStorage.getItem("netsky")`), eval[string](two, `sessionStorage.getItem("netsky")`); a != b || a == old {
		t.Errorf("the tabs have %s and %s", a, b)
	}
}

// A tab asks the server to prove itself before it gives another one the key: a page
// of its origin may be that of a program which had the port meanwhile.
func TestBrowserKeepsKey(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, slowly)
	b := mustBrowser(t)
	one := b.look(t, w)
	one.live()
	two := b.open(t, w)
	two.open("/static/icon.svg") // of this origin, and none of our pages
	ask := `(() => { window.got ||= []; window.c ||= new BroadcastChannel("netsky"); c.onmessage = ({ data }) => got.push(data); c.postMessage({ want: true }) })()`
	eval[any](two, ask)
	two.waits(`got.some((d) => d.held?.key)`) // while the server is there
	eval[any](two, `got.length = 0, null`)
	eval[any](one, `window.asked = 0, new BroadcastChannel("netsky").onmessage = ({ data }) => { if (data.want) asked++; }, null`)
	one.call("Network.emulateNetworkConditions", map[string]any{"offline": true, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}, nil)
	eval[any](two, ask)
	one.waits(`asked > 0`)
	testworld.Equal(t, eval[string](one, `netsky.prove().then(() => "proved", (e) => e.kind)`), "away", "without the server")
	if eval[bool](two, `got.some((d) => d.held)`) {
		t.Error("the key was given away while the server was not there")
	}
}

// Whoever has the port and a page in the browser has a key that the two agree on.
// No open tab takes it for the netsky that it was signed in to.
func TestBrowserStrangeKey(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, slowly)
	w.showcase(t)
	b := mustBrowser(t)
	one := b.look(t, w)
	one.live()
	held := `sessionStorage.getItem("netsky")`
	own, first := eval[string](one, held), w.addr
	w.stop()
	id, key := strings.Repeat("a", 16), strings.Repeat("b", 64)
	var asked, taken atomic.Int64
	l := testworld.Got(net.Listen("tcp4", first))(t)
	srv := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var said struct{ ID, Nonce string }
		if r.URL.Path != "/session" || json.NewDecoder(r.Body).Decode(&said) != nil {
			rw.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(rw, `<title>theirs</title><script>const c = new BroadcastChannel("netsky"); c.onmessage = () => c.postMessage({ held: { id: %q, key: %q } })</script>`, id, key)
			return
		}
		if asked.Add(1); said.ID == id {
			taken.Add(1)
		}
		k, _ := hex.DecodeString(key)
		m := hmac.New(sha256.New, k)
		fmt.Fprintf(m, "server\n%s\nc\nknown", said.Nonce)
		rw.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(rw, `{"state":"known","challenge":"c","proof":"%x","tab":"t"}`, m.Sum(nil))
	})}
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
	two := b.open(t, w)
	two.open("/")
	two.waits(`document.title === "theirs"`)
	before := asked.Load()
	testworld.Wait(t, "the tab asks on", func() bool { return asked.Load() > before+3 })
	if got := eval[string](one, held); got != own || taken.Load() > 0 {
		t.Errorf("the tab has %s, and greeted %d times with the stranger's key", got, taken.Load())
	}
	one.waits(`document.querySelector(".errors").innerText.includes("not the netsky that this tab was signed in to")`)
}

// A row that is not read is one row with its button in it; and a tab that can't
// mark it as read says so where it was asked to.
func TestBrowserMarkReadKeyless(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, slowly)
	testworld.Got(w.bus.Send(t.Context(), envelope.Envelope{ID: "m-new", From: "agent0", To: "owner", Text: "look here"}))(t)
	w.apply(t, store.UpsertMessage{ID: "m-new", From: "agent0", To: "owner", Text: "look here", Time: store.At(time.Now())})
	b := mustBrowser(t)
	l := b.look(t, w)
	l.waits(`document.querySelector("li.letter.unread > .right > form.read button")`)
	if !eval[bool](l, `Boolean(document.querySelector("li.letter.unread > .right > time")) && !document.querySelector("li.letter.unread > time, li.letter.unread > p:empty")`) {
		t.Errorf("the row is torn: %s", eval[string](l, `document.querySelector("li.letter.unread").outerHTML`))
	}
	l.goTo("about:blank")
	l = b.open(t, w)
	for _, path := range []string{"/", "/messages/m-new"} {
		l.open(path)
		l.waits(`document.querySelector("#why-away")`) // it moves the button down: a click before it may miss
		l.click(".inbox button")
		l.waits(`document.querySelector(".inbox .why-not")?.innerText.includes("Not marked as read: This tab is read-only")`)
	}
}

// On a phone the open message box has its words over the whole width, and Send
// below them at the right.
func TestBrowserPhoneSheet(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, slowly)
	w.agents.set(nil, view.Agent{ID: "agent0", State: agent.Idle, Evidence: "x"})
	l := mustBrowser(t).look(t, w)
	l.size(390, 800)
	for _, path := range []string{"/", "/agents/agent0"} {
		l.open(path)
		l.live()
		eval[any](l, `document.querySelector("#text").focus(), null`)
		testworld.Equal(t, eval[string](l, `(() => { const box = (s) => document.querySelector(s).getBoundingClientRect(),
			form = box(".say"), text = box("#text"), send = box(".say .send button");
			return text.width < 350 ? "the words are " + text.width + " wide" : send.top < text.bottom ? "Send is beside the words" :
				form.right - send.right > 20 ? "Send is not at the right" : form.bottom > innerHeight ? "the box is cut off" : ""; })()`), "", "%s", path)
	}
}

// A server that hangs is away, though its connections are open: the page is grey
// and its ages stand still.
func TestBrowserAway(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, slowly)
	w.agents.set(nil, view.Agent{ID: "agent0", State: agent.Idle, Evidence: "x"})
	l := mustBrowser(t).look(t, w)
	l.live()
	w.stop()
	hung, err := net.Listen("tcp4", w.addr) // connections open, and nobody answers
	testworld.Must(t, err)
	defer hung.Close()
	l.waits(`/^as of \d+ s ago$/.test(document.querySelector("#link").textContent)`)
	testworld.Equal(t, eval[string](l, `getComputedStyle(document.querySelector("main")).filter`), "grayscale(1)", "the page's filter")
	eval[any](l, `window.ages = [...document.querySelectorAll("time[data-ago]")].map((t) => t.textContent).join(),
		window.then = document.querySelector("#link").textContent, null`)
	l.waits(`document.querySelector("#link").textContent !== window.then`)
	if !eval[bool](l, `window.ages === [...document.querySelectorAll("time[data-ago]")].map((t) => t.textContent).join()`) {
		t.Error("ages count on while the server is away")
	}
}

func acceptKey(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}
