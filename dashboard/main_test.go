package dashboard_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	"netsky/view"
)

// A world is a home with records, a bus, agents, panes and a running dashboard.
type world struct {
	home   home.Dir
	db     *store.DB
	bus    *bus.Bus
	agents *fakeAgents
	panes  *fakePanes
	work   *fakeWork
	srv    *dashboard.Server
	token  string
	addr   string // host:port
	stop   func()
	mark   string // of all goroutines that its server starts
}

// mustWorld makes a world whose options edit may change.
func mustWorld(tb testing.TB, edit func(*dashboard.Options)) *world {
	tb.Helper()
	w := &world{home: testworld.Home(tb), agents: &fakeAgents{}, panes: newFakePanes(), work: &fakeWork{}}
	var err error
	w.db, err = store.Open(tb.Context(), w.home)
	testworld.Must(tb, err)
	tb.Cleanup(func() { w.db.Close() })
	w.bus = testworld.Bus(tb, w.home, "agent0", "owner")
	w.token, err = access.Token(w.home)
	testworld.Must(tb, err)
	o := dashboard.Options{
		Home: w.home, Records: func() (dashboard.Reader, error) { return w.db, nil },
		Agents: w.agents, Panes: w.panes, Bus: w.bus, Work: w.work, Costs: costs{w.db}, Token: w.token, Version: "v1", Poll: 5 * time.Millisecond,
	}
	if edit != nil {
		edit(&o)
	}
	w.serve(tb, o)
	return w
}

// serve starts a server, where the one before it was.
func (w *world) serve(tb testing.TB, o dashboard.Options) {
	tb.Helper()
	w.mark = fmt.Sprintf("world %d", worlds.Add(1))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	pprof.Do(ctx, pprof.Labels("of", w.mark), func(ctx context.Context) {
		var err error
		w.srv, err = dashboard.New(o)
		testworld.Must(tb, err)
		l := w.listen(tb)
		w.addr = l.Addr().String()
		go func() { ended <- w.srv.Serve(ctx, l) }()
	})
	w.stop = sync.OnceFunc(func() {
		testworld.Wait(tb, "a goroutine of the running server's to be seen, as one that is left would be", func() bool { return w.running() != "" })
		cancel()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		w.mustRunNothing(tb)
	})
	tb.Cleanup(w.stop)
}

var worlds atomic.Int64

// listen takes a port which no system gives to who asks for any: a test that stops
// its server finds the port free afterwards.
func (w *world) listen(tb testing.TB) net.Listener {
	tb.Helper()
	if w.addr != "" && !strings.HasSuffix(w.addr, ":0") {
		l := testworld.Got(w.srv.Listen(tb.Context(), w.addr))(tb)
		return l
	}
	host := cmp.Or(strings.TrimSuffix(w.addr, ":0"), "127.0.0.1")
	for {
		l, err := w.srv.Listen(tb.Context(), fmt.Sprintf("%s:%d", host, 20_000+rand.IntN(10_000)))
		if errors.Is(err, access.ErrTaken) {
			continue
		}
		testworld.Must(tb, err)
		return l
	}
}

// mustRunNothing waits until no goroutine that the world's server has started runs
// code of ours, but for those that one of the words names.
func (w *world) mustRunNothing(tb testing.TB, but ...string) {
	tb.Helper()
	var left string
	testworld.WaitOr(tb, func() bool { left = w.running(but...); return left == "" }, func() string { return "goroutines are left:\n" + left })
}

func (w *world) running(but ...string) string {
	var left []string
	for _, g := range w.stacks() {
		named := func(word string) bool { return strings.Contains(g, word) }
		if (named("netsky/dashboard.") || named("netsky/dashboard/live.") || named("netsky/dashboard/access.")) && !slices.ContainsFunc(but, named) {
			left = append(left, g)
		}
	}
	return strings.Join(left, "\n\n")
}

// stacks are those of the goroutines that the world's server has started.
func (w *world) stacks() (list []string) {
	buf := make([]byte, 256<<10)
	n := runtime.Stack(buf, true)
	for n == len(buf) {
		buf = make([]byte, 2*len(buf))
		n = runtime.Stack(buf, true)
	}
	for g := range strings.SplitSeq(string(buf[:n]), "\n\n") {
		if head, _, _ := strings.Cut(g, "\n"); strings.Contains(head, strconv.Quote(w.mark)) {
			list = append(list, g)
		}
	}
	return list
}

// request makes a request as a script does that has the token.
func (w *world) request(tb testing.TB, method, path, body string) *http.Request {
	tb.Helper()
	r := testworld.Got(http.NewRequestWithContext(tb.Context(), method, "http://"+w.addr+path, strings.NewReader(body)))(tb)
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
	resp := testworld.Got(c.Do(r))(tb)
	defer resp.Body.Close()
	body := testworld.Got(io.ReadAll(resp.Body))(tb)
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
	testworld.Must(tb, json.Unmarshal([]byte(a.body), &v))
	return v
}

func (w *world) apply(tb testing.TB, ops ...store.Op) {
	tb.Helper()
	testworld.Must(tb, w.db.Apply(tb.Context(), ops...))
}

// raw speaks to the server byte by byte and reads until it hangs up.
func (w *world) raw(tb testing.TB, request string) string {
	tb.Helper()
	c := testworld.Got(net.Dial("tcp", w.addr))(tb)
	defer c.Close()
	c.SetDeadline(time.Now().Add(testworld.Patience))
	testworld.Got(c.Write([]byte(request)))(tb)
	var b bytes.Buffer
	io.Copy(&b, c)
	return b.String()
}

func (w *world) inbox(tb testing.TB, id agent.ID) []bus.Entry {
	tb.Helper()
	list := testworld.Got(w.bus.List(id, bus.Inbox, 0))(tb)
	return list
}

// fakeAgents are what a test says they are.
type fakeAgents struct {
	mu   sync.Mutex
	list []view.Agent
	err  error
	asks int
}

func (f *fakeAgents) Agents(context.Context) ([]view.Agent, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asks++
	return append([]view.Agent(nil), f.list...), f.err
}

func (f *fakeAgents) set(err error, list ...view.Agent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list, f.err = append([]view.Agent(nil), list...), err // the caller may go on changing its own
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
