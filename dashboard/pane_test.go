package dashboard_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"netsky/agent"
	"netsky/dashboard/live"
	"netsky/internal/testworld"
)

// A paneEvent is a pane's event as a browser reads it.
type paneEvent struct {
	Agent   agent.ID            `json:"agent"`
	Width   int                 `json:"width"`
	Height  int                 `json:"height"`
	Rows    []live.Row          `json:"rows"`
	Moved   [][3]int            `json:"moved"`
	Changed map[string]live.Row `json:"changed"`
	Error   string              `json:"error"`
}

// A tab keeps a pane as a page does: all rows, then those that change.
type tab struct {
	text   []string
	frames int
	bytes  int
}

func (v *tab) take(tb testing.TB, e event) {
	tb.Helper()
	p := mustData[paneEvent](tb, e)
	v.frames++
	v.bytes += len(e.Data)
	if p.Rows != nil {
		v.text = v.text[:0]
		for _, r := range p.Rows {
			v.text = append(v.text, plain(r))
		}
	}
	before := slices.Clone(v.text)
	for _, m := range p.Moved {
		copy(v.text[m[0]:m[0]+m[2]], before[m[1]:])
	}
	for i, r := range p.Changed {
		var n int
		fmt.Sscan(i, &n)
		v.text[n] = plain(r)
	}
}

func plain(r live.Row) string {
	var b strings.Builder
	for _, run := range r {
		b.WriteString(run.Text)
	}
	return b.String()
}

func TestPaneFollows(t *testing.T) {
	t.Parallel()
	for name, follow := range follows {
		t.Run(name, func(t *testing.T) {
			w := mustWorld(t, nil)
			w.panes.set("agent1", "one\ntwo\nthree")
			s := follow(w, t, "?watch=agent1")
			first := s.key(t, "pane:agent1")
			p := mustData[paneEvent](t, first)
			if len(p.Rows) != 3 || p.Width != 80 || p.Height != 24 || plain(p.Rows[1]) != "two" {
				t.Errorf("pane = %s", first.Data)
			}
			w.panes.set("agent1", "one\n\x1b[31mTWO\nthree")
			e := s.key(t, "pane:agent1")
			p = mustData[paneEvent](t, e)
			// The third row is red now too: tmux carries the style on.
			if p.Rows != nil || len(p.Changed) != 2 || p.Changed["1"][0] != (live.Run{Text: "TWO", Class: "f1"}) {
				t.Errorf("pane = %s", e.Data)
			}
			w.panes.set("agent1", "one row only")
			if p = mustData[paneEvent](t, s.key(t, "pane:agent1")); len(p.Rows) != 1 {
				t.Errorf("pane = %+v", p)
			}
		})
	}
}

// Of a pane that scrolls, whole or in a part, a browser is sent what is new.
func TestPaneScrolls(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	line := func(n int) string { return fmt.Sprintf("line %d %s", n, strings.Repeat("x", 100)) }
	screen := func(first int) string {
		rows := []string{"head"}
		for i := range 40 {
			rows = append(rows, line(first+i))
		}
		return strings.Join(append(rows, "", "foot", ""), "\n")
	}
	w.panes.set("agent1", screen(0))
	s := w.sse(t, "/events?watch=agent1", "")
	var v tab
	v.take(t, s.key(t, "pane:agent1"))
	for _, first := range []int{1, 2, 5, 4, 40, 0} {
		w.panes.set("agent1", screen(first))
		before := v.bytes
		v.take(t, s.key(t, "pane:agent1"))
		testworld.Equal(t, strings.Join(v.text, "\n"), strings.TrimSuffix(screen(first), "\n"), "at %d the tab shows", first)
		if n := v.bytes - before; first <= 5 && first > 0 && n > 800 {
			t.Errorf("at %d %d bytes were sent", first, n)
		}
	}
}

// A browser changes what it looks at; only that costs anything, and of a pane
// that is not there it is told why until it is.
func TestPaneWatch(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.panes.set("agent1", "one")
	w.panes.set("agent2", "two")
	s := w.ws(t, "/ws")
	s.key(t, "hello")
	testworld.Equal(t, w.panes.watched(), 0, "panes are watched that nobody looks at")
	s.ask(`{"watch":["agent1","agent2","agent1"]}`)
	seen := map[string]bool{}
	s.until(t, "both", func(e event) bool { seen[e.Key] = true; return seen["pane:agent1"] && seen["pane:agent2"] })
	s.ask(`{"watch":["agent2","agent3"]}`)
	e := s.key(t, "pane:agent3")
	if p := mustData[paneEvent](t, e); !strings.Contains(p.Error, "no session") {
		t.Errorf("agent3: %s", e.Data)
	}
	testworld.Wait(t, "agent1 is let go", func() bool { return w.panes.watched() == 1 })
	w.panes.set("agent1", "nobody looks")
	w.panes.set("agent3", "up now")
	s.until(t, "agent3 is up", func(e event) bool {
		if e.Key == "pane:agent1" {
			t.Errorf("told of a pane it doesn't look at: %s", e.Data)
		}
		return e.Key == "pane:agent3" && strings.Contains(string(e.Data), "up now")
	})
	s.ask(`{"watch":[]}`)
	testworld.Wait(t, "all are let go", func() bool { return w.panes.watched() == 0 })
}

func TestPaneOnDemand(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.panes.set("agent1", "x\x1b[1my")
	p := mustGet[live.Pane](t, w, "/api/pane/agent1")
	if len(p.Rows) != 1 || len(p.Rows[0]) != 2 || p.Rows[0][1] != (live.Run{Text: "y", Class: "b"}) || p.History != 0 {
		t.Errorf("pane = %+v", p)
	}
	p = mustGet[live.Pane](t, w, "/api/pane/agent1?history=100")
	if len(p.Rows) != 2 || p.History != 1 || plain(p.Rows[0]) != "above" {
		t.Errorf("pane = %+v", p)
	}
	for path, want := range map[string]int{
		"/api/pane/agent2": 404, "/api/pane/owner": 404, "/api/pane/x": 404, "/api/pane/agent1?history=-1": 400,
		"/api/pane/agent1?history=5001": 400, "/api/pane/agent1?history=x": 400, "/api/pane/agent1?hist=1": 400,
	} {
		if a := w.get(t, path); a.status != want {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

// One tab of ten that does not read takes nothing from the nine: they see every
// step. When it reads again it has few frames, the last of them the latest.
func TestFrozenTab(t *testing.T) {
	t.Parallel()
	const steps, rows = 40, 400
	w := mustWorld(t, nil)
	screen := func(step int) string {
		line := fmt.Sprintf("step %04d ", step) + strings.Repeat("x", 900)
		marks := "" // each is made in one step, and must not be missed by who missed that
		for i := range steps {
			if i < step {
				marks += "made"
			}
			marks += "\n"
		}
		return strings.Repeat(line+"\n", rows) + marks + "end"
	}
	w.panes.set("agent1", screen(0))
	frozen := w.dial(t)
	var reached [9]atomic.Int64
	for i := range reached {
		c := w.dial(t)
		go func() { // ends when the test closes the connection
			for {
				_, data, err := c.ReadMessage()
				if err != nil {
					return
				}
				if _, after, ok := bytes.Cut(data, []byte("step ")); ok {
					n, _ := strconv.ParseInt(string(after[:4]), 10, 64)
					reached[i].Store(n)
				}
			}
		}()
	}
	unheld := false // the nine have seen a step while a write to the tenth waited
	for step := 1; step <= steps; step++ {
		waits := w.waitingWrites()
		w.panes.set("agent1", screen(step))
		for i := range reached {
			testworld.Wait(t, fmt.Sprintf("step %d in tab %d", step, i), func() bool { return reached[i].Load() == int64(step) })
		}
		for id := range w.waitingWrites() {
			unheld = unheld || waits[id]
		}
	}
	if !unheld {
		t.Error("the nine see no step while a write to the frozen tab waits")
	}
	var v tab
	frozen.SetReadDeadline(time.Now().Add(testworld.Patience))
	for len(v.text) == 0 || !strings.HasPrefix(v.text[0], fmt.Sprintf("step %04d", steps)) {
		var e event
		_, data, err := frozen.ReadMessage()
		if err != nil {
			// On a slow machine it was given up: what it had got is still little.
			t.Logf("the frozen tab was given up after %d frames: %v", v.frames, err)
			break
		}
		testworld.Must(t, json.Unmarshal(data, &e))
		if e.Key == "pane:agent1" {
			v.take(t, e)
		}
	}
	for i := 0; len(v.text) > rows && i < steps && strings.HasPrefix(v.text[0], fmt.Sprintf("step %04d", steps)); i++ {
		testworld.Equal(t, v.text[rows+i], "made", "the frozen tab shows nothing of step %d", i+1)
	}
	if v.frames >= steps/2 {
		t.Errorf("the frozen tab was sent %d frames of %d", v.frames, steps)
	}
}

// However fast panes change, also while they are being captured, each tab that
// reads comes to show how each is at last; one that does not read keeps nobody
// from it.
func TestLastState(t *testing.T) {
	t.Parallel()
	const panes, steps = 20, 50
	w := mustWorld(t, nil)
	var ids []string
	var at [panes]int // the step of each; only of the one goroutine that captures
	screen := func(n, step int) string {
		return strings.Repeat("x", 2000) + fmt.Sprintf("\n%d at step %d", n, step)
	}
	for n := range panes {
		ids = append(ids, fmt.Sprint("agent", n+1))
		w.panes.set(agent.Clone(n+1), screen(n, 0))
	}
	w.panes.during = func(id agent.ID) {
		n := slices.Index(ids, string(id))
		if at[n] < steps {
			at[n]++
			w.panes.set(id, screen(n, at[n]))
		}
	}
	query := "?watch=" + strings.Join(ids, ",")
	w.dialPath(t, "/ws"+query) // frozen
	var tabs []*stream
	for _, follow := range follows {
		tabs = append(tabs, follow(w, t, query), follow(w, t, query))
	}
	for _, s := range tabs {
		views := map[string]*tab{}
		for _, id := range ids {
			views[id] = &tab{}
		}
		left := panes
		s.until(t, "the last step of each", func(e event) bool {
			v := views[strings.TrimPrefix(e.Key, "pane:")]
			if v == nil {
				return false
			}
			v.take(t, e)
			if v.text[1] == fmt.Sprintf("%d at step %d", slices.Index(ids, strings.TrimPrefix(e.Key, "pane:")), steps) {
				left--
			}
			return left == 0
		})
	}
}

func TestSocketAnswersPing(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	c := w.dialPath(t, "/ws")
	pong := ""
	c.SetPongHandler(func(data string) error { pong = data; return errors.New("heard") })
	testworld.Must(t, c.WriteControl(websocket.PingMessage, []byte("there?"), time.Now().Add(testworld.Patience)))
	c.SetReadDeadline(time.Now().Add(testworld.Patience))
	for pong == "" {
		if _, _, err := c.ReadMessage(); err != nil && pong == "" {
			t.Fatal(err)
		}
	}
	testworld.Equal(t, pong, "there?", "pong")
}

// waitingWrites are the goroutines that wait for a browser to read.
func (w *world) waitingWrites() map[string]bool {
	waits := map[string]bool{}
	for _, g := range w.stacks() {
		id, _, _ := strings.Cut(g, " [IO wait")
		if id != g && strings.Contains(g, "(*outbox).send") {
			waits[id] = true
		}
	}
	return waits
}

// dial opens a websocket that looks at agent1's pane. Unless it is read it is a
// frozen tab's.
func (w *world) dial(tb testing.TB) *websocket.Conn {
	tb.Helper()
	return w.dialPath(tb, "/ws?watch=agent1")
}

func (w *world) dialPath(tb testing.TB, path string) *websocket.Conn {
	tb.Helper()
	d := websocket.Dialer{ReadBufferSize: 64 << 10}
	c, _, err := d.DialContext(tb.Context(), "ws://"+w.addr+path, http.Header{"Authorization": {"Bearer " + w.token}})
	testworld.Must(tb, err)
	tb.Cleanup(func() { c.Close() })
	return c
}

// The server ends at once, also when it waits for a browser that does not read.
func TestFrozenTabAtTheEnd(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.panes.set("agent1", "x")
	w.dial(t)
	n := 0
	testworld.Wait(t, "a write waits", func() bool {
		n++
		w.panes.set("agent1", strings.Repeat(fmt.Sprintf("%d%s\n", n, strings.Repeat("x", 900)), 1000))
		return len(w.waitingWrites()) > 0
	})
	began := time.Now()
	w.stop()
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("took %v", took)
	}
}
