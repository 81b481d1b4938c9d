package dashboard_test

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/dashboard"
	"netsky/dashboard/access"
	"netsky/dashboard/live"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
)

// Row 33: what is too large is refused, what is too slow is hung up on, and what
// is too much is not taken in; others are served all the while, and the bus
// works.
func TestRow33Limits(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	t.Run("body of 10 MiB", func(t *testing.T) {
		if a := w.say(t, `{"to":"agent0","text":"`+strings.Repeat("x", 10<<20)); a.status != 413 {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
	t.Run("body of 10 MiB that says so", func(t *testing.T) {
		got := w.raw(t, "POST /api/user-message HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+w.token+
			"\r\nContent-Type: application/json\r\nContent-Length: 10485760\r\n\r\n"+strings.Repeat(" ", 70<<10))
		if !strings.HasPrefix(got, "HTTP/1.1 413") {
			t.Errorf("%.60q", got)
		}
	})
	t.Run("headers", func(t *testing.T) {
		got := w.raw(t, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Large: "+strings.Repeat("x", 2<<20)+"\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 431") {
			t.Errorf("%.60q", got)
		}
	})
	t.Run("a smuggled request", func(t *testing.T) {
		inner := "POST /api/user-message HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 29\r\n\r\n{\"to\":\"agent0\",\"text\":\"evil\"}"
		got := w.raw(t, "POST /api/user-message HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+w.token+
			"\r\nContent-Type: application/json\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"+inner)
		for line := range strings.SplitSeq(got, "\n") {
			if strings.HasPrefix(line, "HTTP/1.1 2") {
				t.Errorf("answered %q", line)
			}
		}
	})
	if n := len(w.inbox(t, "agent0")); n != 0 {
		t.Fatalf("%d messages were sent", n)
	}
	if a := w.say(t, `{"to":"agent0","text":"still here"}`); a.status != 202 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// half begins a request.
func (w *world) half(tb testing.TB, begin string) net.Conn {
	tb.Helper()
	c, err := net.Dial("tcp", w.addr)
	testworld.Must(tb, err)
	tb.Cleanup(func() { c.Close() })
	if _, err = io.WriteString(c, begin); err != nil && !strings.Contains(err.Error(), "reset") && !strings.Contains(err.Error(), "broken pipe") {
		tb.Fatal(err)
	}
	return c
}

// Row 33: whoever has shown the token keeps the connection, and gets another,
// however many strangers come and say nothing.
func TestRow33Reserve(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	owner := func() *http.Client {
		tr := &http.Transport{MaxConnsPerHost: 1}
		t.Cleanup(tr.CloseIdleConnections)
		return &http.Client{Transport: tr}
	}
	ask := func(c *http.Client, when string) {
		t.Helper()
		resp, err := c.Do(w.request(t, "GET", "/api/agents", ""))
		if err != nil {
			t.Errorf("%s: %v", when, err)
			return
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	first, conns := owner(), 0
	ask(first, "before")
	trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if !i.Reused {
			conns++
		}
	}}
	for i := range 600 {
		w.half(t, "GET / HT")
		if i%100 == 99 {
			ask(owner(), "on a new connection")
			resp := testworld.Got(first.Do(w.request(t, "GET", "/api/agents", "").WithContext(httptrace.WithClientTrace(t.Context(), trace))))(t)
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
	if conns > 0 {
		t.Errorf("the owner's connection was cut %d times", conns)
	}
}

// Row 33: cookies that other servers of this machine have set are no trouble, and
// strangers can't fill the memory with what would be.
func TestRow33Cookies(t *testing.T) {
	w := mustWorld(t, nil)
	own := w.login(t)
	for _, size := range []int{430, 4000} { // 180 of them: 78 KB and 720 KB
		var all []string
		for i := range 180 {
			all = append(all, fmt.Sprintf("other%d=%s", i, strings.Repeat("x", size)))
		}
		all = append(all, own.Name+"="+own.Value)
		for path, want := range map[string]int{"/login?code=" + w.code(t): 200, "/": 200, "/api/agents": 200, "/palette.css": 200} {
			r := w.request(t, "GET", path, "")
			r.Header.Del("Authorization")
			r.Header.Set("Cookie", strings.Join(all, "; "))
			testworld.Equal(t, mustAnswer(t, r).status, want, "%s with cookies of %d bytes", path, size*180)
		}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	half := "GET / HTTP/1.1\r\nHost: localhost\r\nCookie: " + strings.Repeat("x", 1<<20-100)
	for range 120 {
		w.half(t, half)
	}
	mb := int64(0)
	testworld.WaitOr(t, func() bool { // what was read last is still being copied
		runtime.GC()
		runtime.ReadMemStats(&after)
		mb = (int64(after.HeapAlloc) - int64(before.HeapAlloc)) >> 20
		return mb <= 60
	}, func() string { return fmt.Sprintf("120 strangers hold %d MB", mb) })
	t.Logf("%d MB held by 120 strangers", mb)
	if !w.up(t) {
		t.Error("not served any more")
	}
}

// Any address of the loopback's can be listened on, and is known then; another is
// not, nor is a name that was pointed there.
func TestOtherLoopback(t *testing.T) {
	t.Parallel()
	w := &world{home: testworld.Home(t), agents: &fakeAgents{}, panes: newFakePanes(), addr: "127.0.0.2:0"}
	var err error
	w.db, err = store.Open(t.Context(), w.home)
	testworld.Must(t, err)
	t.Cleanup(func() { w.db.Close() })
	w.bus = bus.New(w.home, bus.Options{})
	w.token, err = access.Token(w.home)
	testworld.Must(t, err)
	w.serve(t, dashboard.Options{
		Home: w.home, Records: func() (dashboard.Reader, error) { return w.db, nil }, Agents: w.agents, Bus: w.bus, Token: w.token,
	})
	for host, want := range map[string]int{w.addr: 200, "127.0.0.3:1": 403, "evil.example": 403} {
		r := w.request(t, "GET", "/api/agents", "")
		r.Host = host
		testworld.Equal(t, mustAnswer(t, r).status, want, "as %s", host)
	}
}

// up asks on a connection of its own whether the server serves.
func (w *world) up(tb testing.TB) bool {
	tb.Helper()
	c := testworld.Got(net.Dial("tcp", w.addr))(tb)
	defer c.Close()
	c.SetDeadline(time.Now().Add(testworld.Patience))
	io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	data, _ := io.ReadAll(c)
	return strings.HasPrefix(string(data), "HTTP/1.1 200")
}

// Row 33: idle streams have a cap, which leaves room for the rest.
func TestRow33Streams(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, func(o *dashboard.Options) { o.MaxStreams = 8 })
	for i := range 12 {
		resp := testworld.Got(http.DefaultClient.Do(w.request(t, "GET", "/events", "")))(t)
		defer resp.Body.Close()
		if want := map[bool]int{true: 200, false: 503}[i < 8]; resp.StatusCode != want {
			t.Errorf("stream %d: %d, want %d", i, resp.StatusCode, want)
		}
		if resp.StatusCode == 503 && resp.Header.Get("Retry-After") == "" {
			t.Errorf("stream %d: not told when to come again", i)
		}
		if i == 0 { // it has begun
			testworld.Got(bufio.NewReader(resp.Body).ReadString('\n'))(t)
		}
	}
	if a := w.say(t, `{"to":"agent0","text":"still here"}`); a.status != 202 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// Row 35: no GET changes anything, not even a question that a dead process left.
func TestRow35GetsChangeNothing(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.apply(t, store.UpsertActor{ID: "agent1"}, store.AddLog{Text: "up"}, store.AddNote{ID: "n", Text: "x"},
		store.UpsertTask{ID: "t-1", Title: "x"}, store.UpsertMessage{ID: "m-1", From: "owner", To: "agent1", Text: "x"})
	asked := testworld.Got(home.Approvals(w.home).Ask(agent.Approval{Agent: "agent1", Tool: "Bash", Text: "ls"}))(t)
	path := w.home.Path(home.ApprovalDir, asked.Code+".json")
	data := testworld.Got(os.ReadFile(path))(t)
	testworld.Must(t, os.WriteFile(path, []byte(strings.Replace(string(data), fmt.Sprintf(`"pid":%d`, os.Getpid()), `"pid":4194303`, 1)), 0o600))
	if l := mustGet[store.List[live.Approval]](t, w, "/api/approvals"); len(l.Items) != 0 {
		t.Errorf("a dead process asks: %+v", l.Items)
	}
	w.panes.set("agent1", "x")
	before := hash(t, w.home)
	for _, path := range append(routes, "/login?code="+w.code(t), "/api/messages/m-1", "/api/tasks/t-1", "/api/notes/n",
		"/api/timeline/m-1", "/api/logs?after=1", "/api/pane/agent1?history=9", "/api/user-message?to=agent0&text=x") {
		for _, method := range []string{"GET", "HEAD"} {
			resp := testworld.Got(http.DefaultClient.Do(w.request(t, method, path, "")))(t)
			if !strings.Contains(resp.Header.Get("Content-Type"), "event-stream") {
				io.Copy(io.Discard, resp.Body)
			}
			resp.Body.Close()
		}
	}
	testworld.Equal(t, hash(t, w.home), before, "after")
}

// hash is every file below the home with what is in it, but for the memory that
// SQLite's readers share.
func hash(tb testing.TB, home home.Dir) string {
	tb.Helper()
	var b strings.Builder
	testworld.Must(tb, filepath.WalkDir(home.Root(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || strings.HasSuffix(path, "-shm") {
			return err
		}
		fmt.Fprintf(&b, "%s %v", strings.TrimPrefix(path, home.Root()), d.Type())
		if d.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %x", sha256.Sum256(data))
		}
		b.WriteByte('\n')
		return nil
	}))
	return b.String()
}
