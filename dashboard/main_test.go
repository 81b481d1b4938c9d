package dashboard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus"
	"netsky/dashboard"
	"netsky/dashboard/access"
	"netsky/dashboard/live"
	"netsky/store"
)

// patience is how long a test waits for what must come, on the slowest machine.
const patience = 60 * time.Second

// A world is a home with records, a bus, agents, panes and a running dashboard.
type world struct {
	home   home.Dir
	db     *store.DB
	bus    *bus.Bus
	agents *fakeAgents
	panes  *fakePanes
	srv    *dashboard.Server
	token  string
	addr   string // host:port
	stop   func()
}

func mustHome(tb testing.TB) home.Dir {
	tb.Helper()
	dir, err := os.MkdirTemp("", "n")
	mustDo(tb, err)
	tb.Cleanup(func() { os.RemoveAll(dir) })
	home, err := home.At(dir)
	mustDo(tb, err)
	_, err = home.Make()
	mustDo(tb, err)
	return home
}

func mustDo(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// mustWorld makes a world whose options edit may change.
func mustWorld(tb testing.TB, edit func(*dashboard.Options)) *world {
	tb.Helper()
	w := &world{home: mustHome(tb), agents: &fakeAgents{}, panes: newFakePanes()}
	var err error
	w.db, err = store.Open(tb.Context(), w.home)
	mustDo(tb, err)
	tb.Cleanup(func() { w.db.Close() })
	w.bus = bus.New(w.home, bus.Options{})
	mustDo(tb, w.bus.Make("agent0"))
	mustDo(tb, w.bus.Make("owner"))
	w.token, err = access.Token(w.home)
	mustDo(tb, err)
	o := dashboard.Options{
		Home: w.home, Records: func() (dashboard.Reader, error) { return w.db, nil },
		Agents: w.agents, Panes: w.panes, Bus: w.bus, Token: w.token, Version: "v1", Poll: 5 * time.Millisecond,
	}
	if edit != nil {
		edit(&o)
	}
	w.serve(tb, o)
	return w
}

func (w *world) serve(tb testing.TB, o dashboard.Options) {
	tb.Helper()
	var err error
	w.srv, err = dashboard.New(o)
	mustDo(tb, err)
	if w.addr == "" {
		w.addr = "127.0.0.1:0"
	}
	l, err := w.srv.Listen(tb.Context(), w.addr) // the one after another is where that was
	mustDo(tb, err)
	w.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.srv.Serve(ctx, l) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		if left := waitGone(); left != "" {
			tb.Errorf("goroutines are left:\n%s", left)
		}
	})
	tb.Cleanup(w.stop)
}

// waitGone waits until no goroutine of the package runs, but for those that
// one of the words names, and returns those that still do.
func waitGone(but ...string) string {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		left := running(but)
		if left == "" || time.Now().After(end) {
			return left
		}
	}
}

func running(but []string) string {
	var left []string
	for g := range strings.SplitSeq(allStacks(), "\n\n") {
		named := func(word string) bool { return strings.Contains(g, word) }
		if (named("netsky/dashboard.") || named("netsky/dashboard/live.") || named("netsky/dashboard/access.")) && !slices.ContainsFunc(but, named) {
			left = append(left, g)
		}
	}
	return strings.Join(left, "\n\n")
}

// request makes a request as a script does that has the token.
func (w *world) request(tb testing.TB, method, path, body string) *http.Request {
	tb.Helper()
	r, err := http.NewRequestWithContext(tb.Context(), method, "http://"+w.addr+path, strings.NewReader(body))
	mustDo(tb, err)
	r.Header.Set("Authorization", "Bearer "+w.token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// An answer is a response that has been read.
type answer struct {
	status int
	header http.Header
	body   string
}

func mustAnswer(tb testing.TB, r *http.Request) answer {
	tb.Helper()
	c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := c.Do(r)
	mustDo(tb, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	mustDo(tb, err)
	return answer{resp.StatusCode, resp.Header, string(body)}
}

func (w *world) get(tb testing.TB, path string) answer {
	tb.Helper()
	return mustAnswer(tb, w.request(tb, "GET", path, ""))
}

func mustGet[T any](tb testing.TB, w *world, path string) (v T) {
	tb.Helper()
	a := w.get(tb, path)
	if a.status != http.StatusOK {
		tb.Fatalf("GET %s: %d %s", path, a.status, a.body)
	}
	mustDo(tb, json.Unmarshal([]byte(a.body), &v))
	return v
}

func (w *world) apply(tb testing.TB, ops ...store.Op) {
	tb.Helper()
	mustDo(tb, w.db.Apply(tb.Context(), ops...))
}

// raw speaks to the server byte by byte and reads until it hangs up.
func (w *world) raw(tb testing.TB, request string) string {
	tb.Helper()
	c, err := net.Dial("tcp", w.addr)
	mustDo(tb, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	_, err = c.Write([]byte(request))
	mustDo(tb, err)
	var b bytes.Buffer
	io.Copy(&b, c)
	return b.String()
}

func (w *world) inbox(tb testing.TB, id agent.ID) []bus.Entry {
	tb.Helper()
	list, err := w.bus.List(id, bus.Inbox, 0)
	mustDo(tb, err)
	return list
}

// fakeAgents are what a test says they are.
type fakeAgents struct {
	mu   sync.Mutex
	list []live.Agent
	err  error
	asks int
}

func (f *fakeAgents) Agents(context.Context) ([]live.Agent, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asks++
	return append([]live.Agent(nil), f.list...), f.err
}

func (f *fakeAgents) set(err error, list ...live.Agent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list, f.err = append([]live.Agent(nil), list...), err // the caller may go on changing its own
}

// fakePanes show what a test has put there.
type fakePanes struct {
	mu      sync.Mutex
	screens map[agent.ID]live.Screen
	watches map[agent.ID]map[chan struct{}]func()
	shots   int
	looks   int            // calls of Watch
	during  func(agent.ID) // if set, happens while a screen is being captured
}

func newFakePanes() *fakePanes {
	return &fakePanes{screens: map[agent.ID]live.Screen{}, watches: map[agent.ID]map[chan struct{}]func(){}}
}

func (f *fakePanes) set(id agent.ID, text string) {
	f.show(id, live.Screen{Text: text, Width: 80, Height: 24})
}

func (f *fakePanes) show(id agent.ID, sc live.Screen) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.screens[id] = sc
	for _, stirred := range f.watches[id] {
		stirred()
	}
}

func (f *fakePanes) Screen(_ context.Context, id agent.ID, history int) (live.Screen, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shots++
	sc, ok := f.screens[id]
	if !ok {
		return sc, errors.New("no session")
	}
	if sc.History = min(history, 1); sc.History == 1 {
		sc.Text = "above\n" + sc.Text
	}
	return sc, nil
}

func (f *fakePanes) Screens(ctx context.Context, ids []agent.ID) (list []live.Shot) {
	for _, id := range ids {
		sc, err := f.Screen(ctx, id, 0)
		list = append(list, live.Shot{Screen: sc, Err: err})
		if f.during != nil {
			f.during(id)
		}
	}
	return list
}

func (f *fakePanes) Watch(ctx context.Context, id agent.ID, stirred func()) (<-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks++
	if _, ok := f.screens[id]; !ok {
		return nil, errors.New("no session")
	}
	c := make(chan struct{})
	if f.watches[id] == nil {
		f.watches[id] = map[chan struct{}]func(){}
	}
	f.watches[id][c] = stirred
	context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watches[id], c)
		close(c)
	})
	return c, nil
}

// watched is how many panes are being looked at.
func (f *fakePanes) watched() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.watches {
		n += len(w)
	}
	return n
}

// waitFor waits until a condition holds.
func waitFor(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(end) {
			tb.Fatalf("%s: not within %v", what, patience)
		}
	}
}

func allStacks() string {
	buf := make([]byte, 4<<20)
	return string(buf[:runtime.Stack(buf, true)])
}
