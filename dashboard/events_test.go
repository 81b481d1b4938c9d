package dashboard_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"netsky/agent"
	"netsky/dashboard"
	"netsky/dashboard/live"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/view"
)

// follows opens either stream on a world.
var follows = map[string]func(*world, testing.TB, string) *stream{
	"sse": func(w *world, tb testing.TB, query string) *stream { return w.sse(tb, "/events"+query, "") },
	"ws":  func(w *world, tb testing.TB, query string) *stream { return w.ws(tb, "/ws"+query) },
}

// Both streams tell what there is, and then what changes.
func TestFollow(t *testing.T) {
	t.Parallel()
	for name, follow := range follows {
		t.Run(name, func(t *testing.T) {
			w := mustWorld(t, nil)
			w.agents.set(nil, view.Agent{ID: "agent0", State: agent.Idle}, view.Agent{ID: "agent1", State: agent.Busy})
			w.apply(t, store.AddLog{Text: "one"})
			s := follow(w, t, "")
			if v := mustData[map[string]string](t, s.key(t, "hello")); v["version"] != "v1" {
				t.Errorf("hello = %v", v)
			}
			first := mustData[live.Records](t, s.key(t, "records"))
			if first.Last != 1 || len(first.Logs) != 0 || first.More {
				t.Errorf("records = %+v", first)
			}
			w.apply(t, store.AddLog{Text: "two"})
			e := s.key(t, "records")
			if v := mustData[live.Records](t, e); e.ID != 2 || v.Since != 1 || len(v.Logs) != 1 || v.Logs[0].Text != "two" {
				t.Errorf("records = %d %s", e.ID, e.Data)
			}
			w.apply(t, store.UpsertActor{ID: "agent9"}) // leaves no log
			if v := mustData[live.Records](t, s.key(t, "records")); v.Last != 2 || len(v.Logs) != 0 {
				t.Errorf("records = %+v", v)
			}
			w.agents.set(nil, view.Agent{ID: "agent0", State: agent.Waiting, Detail: "a dialog"})
			s.until(t, "agent0 waits", func(e event) bool {
				return e.Key == "agent:agent0" && strings.Contains(string(e.Data), `"state":"waiting"`)
			})
			s.until(t, "agent1 is gone", func(e event) bool { return e.Key == "agent:agent1" && string(e.Data) == "null" })
			w.agents.set(errors.New("no tmux"))
			s.until(t, "no agents", func(e event) bool { return e.Key == "agents" && strings.Contains(string(e.Data), "no tmux") })
			a := testworld.Got(home.Approvals(w.home).Ask(agent.Approval{Agent: "agent0", Tool: "Bash", Text: "ls"}))(t)
			s.until(t, "an approval", func(e event) bool {
				return e.Key == "approvals" && strings.Contains(string(e.Data), `"allow":"netsky approve `+a.Code+`"`)
			})
		})
	}
}

// A change that another process makes is told too: it is another connection to
// the file, as here.
func TestFollowOtherWriter(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	s := w.ws(t, "/ws")
	s.key(t, "records")
	other := testworld.Got(store.Open(t.Context(), w.home))(t)
	defer other.Close()
	testworld.Must(t, other.Apply(t.Context(), store.AddLog{Text: "from elsewhere"}))
	s.until(t, "the log", func(e event) bool { return strings.Contains(string(e.Data), "from elsewhere") })
}

// Who comes back with the last id it saw is told what came since: in the event
// if it is little, else where to read it.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	var ops []store.Op
	for i := range 400 {
		ops = append(ops, store.AddLog{Text: fmt.Sprint("log ", i+1)})
	}
	w.apply(t, ops...)
	for _, tt := range []struct {
		after int64
		logs  int
		more  bool
		since int64
	}{
		{400, 0, false, 400},
		{399, 1, false, 399},
		{350, 50, false, 350},
		{349, 50, true, 349}, // more than one event holds
		{144, 50, true, 144},
		{1, 50, true, 1},   // more than is in memory
		{999, 50, true, 0}, // of other records than these
	} {
		for name, follow := range map[string]func() *stream{
			"sse":         func() *stream { return w.sse(t, "/events", fmt.Sprint(tt.after)) },
			"sse, query":  func() *stream { return w.sse(t, fmt.Sprint("/events?after=", tt.after), "") },
			"sse, header": func() *stream { return w.sse(t, "/events?after=7", fmt.Sprint(tt.after)) },
			"ws":          func() *stream { return w.ws(t, fmt.Sprint("/ws?after=", tt.after)) },
		} {
			s := follow()
			e := s.key(t, "records")
			v := mustData[live.Records](t, e)
			if e.ID != 400 || v.Last != 400 || v.Since != tt.since || len(v.Logs) != tt.logs || v.More != tt.more ||
				tt.logs > 0 && v.Logs[tt.logs-1].ID != 400 {
				t.Errorf("%s after %d: %+v", name, tt.after, v)
			}
			s.close()
		}
	}
	l := mustGet[store.List[store.Log]](t, w, "/api/logs?after=349&limit=1000")
	if len(l.Items) != 51 || l.Items[0].ID != 350 {
		t.Errorf("/api/logs?after=349: %d, first %d", len(l.Items), l.Items[0].ID)
	}
}

// Through a gap of the stream no log is missed: the ids that were seen and those
// that come after the gap are all.
func TestGap(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	seen := map[int64]bool{}
	last, written := "", 0
	write := func(n int) {
		for range n {
			written++
			w.apply(t, store.AddLog{Text: "x"})
		}
	}
	write(1)
	for range 5 {
		s := w.sse(t, "/events?after=0", last)
		for len(seen) < written {
			e := s.key(t, "records")
			for _, l := range mustData[live.Records](t, e).Logs {
				seen[l.ID] = true
			}
			last = fmt.Sprint(e.ID)
		}
		s.close()
		write(20)
	}
}

// Records that can't be read are an event, and so is that they can be again.
func TestFollowBrokenRecords(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	w := mustWorld(t, func(o *dashboard.Options) {
		records := o.Records
		o.Records = func() (dashboard.Reader, error) {
			if broken.Load() {
				return nil, errors.New("meta.db: damaged")
			}
			return records()
		}
	})
	s := w.ws(t, "/ws")
	s.key(t, "records")
	broken.Store(true)
	s.until(t, "damaged", func(e event) bool { return strings.Contains(string(e.Data), "meta.db: damaged") })
	if a := w.get(t, "/api/messages"); a.status != 503 || !strings.Contains(a.body, "damaged") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if v := mustGet[dashboard.Overview](t, w, "/api/snapshot"); len(v.Errors) != 1 || v.Messages == nil {
		t.Errorf("snapshot = %+v", v)
	}
	broken.Store(false)
	w.apply(t, store.AddLog{Text: "repaired"})
	s.until(t, "repaired", func(e event) bool { return strings.Contains(string(e.Data), "repaired") })
}

// A database that was replaced is another, whether it has fewer logs or more: who
// follows is told to read anew.
func TestFollowReplacedRecords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ old, fresh int }{{2, 1}, {2, 2}, {2, 5}, {1, 1}, {1, 3}, {300, 301}} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			logs := func(n int, text string) (ops []store.Op) {
				for range n {
					ops = append(ops, store.AddLog{Text: text})
				}
				return ops
			}
			w := mustWorld(t, nil)
			w.apply(t, logs(tt.old, "old")...)
			s := w.ws(t, "/ws")
			s.key(t, "records")
			for _, name := range []string{"", "-wal", "-shm"} {
				testworld.Must(t, os.Remove(w.home.Path(home.DBFile)+name))
			}
			w.apply(t, logs(tt.fresh, "new")...)
			anew := false
			s.until(t, "the new records", func(e event) bool {
				if e.Key != "records" {
					return false
				}
				v := mustData[live.Records](t, e)
				anew = anew || v.Since == 0 && v.More
				return anew && v.Last == int64(tt.fresh) && v.Logs[len(v.Logs)-1].Text == "new"
			})
		})
	}
}

// A browser that says anything but which panes it looks at is hung up on.
func TestSocketRefuses(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	many := testworld.Got(json.Marshal(map[string][]string{"watch": strings.Split(strings.Repeat("agent1,", 65), ",")}))(t)
	for _, text := range []string{
		"", "x", "null", "{}", "[]", `{"watch":null}`, `{"watch":"agent1"}`, `{"watch":["../x"]}`, `{"watch":["owner"]}`,
		`{"watch":[""]}`, `{"watch":["agent1"],"send":"x"}`, `{"say":"x"}`, string(many), `{"watch":[` + strings.Repeat(`"agent1",`, 4000),
	} {
		s := w.ws(t, "/ws")
		s.ask(text)
		for {
			if _, err := s.next(); err != nil {
				var end *websocket.CloseError
				if !errors.As(err, &end) && !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
					t.Errorf("%.40q: %v", text, err)
				}
				break
			}
		}
	}
	for _, query := range []string{"after=x", "after=-1", "watch=owner", "watch=agent1,,", "x=y", "after=1&after=2"} {
		testworld.Equal(t, w.get(t, "/events?"+query).status, 400, "/events?%s", query)
	}
	r := w.request(t, "GET", "/ws", "")
	testworld.Equal(t, mustAnswer(t, r).status, http.StatusUpgradeRequired, "/ws without an upgrade")
}

// While nobody looks, nothing is asked; and when the server ends, so do those
// who follow. What w.stop checks: no goroutine is left.
func TestFollowEnds(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.panes.set("agent1", "x")
	s, e := w.ws(t, "/ws?watch=agent1"), w.sse(t, "/events?watch=agent1", "")
	s.key(t, "pane:agent1")
	e.key(t, "pane:agent1")
	testworld.Equal(t, w.panes.watched(), 1, "a pane two browsers look at is watched")
	s.close()
	e.close()
	w.mustRunNothing(t, "access.(*Guard).Serve(", "access.(*limited).Accept") // but what waits for somebody to look
	testworld.Equal(t, w.panes.watched(), 0, "panes watched though nobody looks")
	s, e = w.ws(t, "/ws?watch=agent1"), w.sse(t, "/events?watch=agent1", "")
	s.key(t, "pane:agent1")
	e.key(t, "pane:agent1")
	w.stop()
	for _, f := range []*stream{s, e} {
		for {
			if _, err := f.next(); err != nil {
				break
			}
		}
	}
}

// Of what a browser asks for faster than it can be shown only the last counts.
func TestFlips(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	ids := []agent.ID{"agent1", "agent2", "agent3"}
	for _, id := range ids {
		w.panes.set(id, string(id))
	}
	s := w.ws(t, "/ws")
	began := time.Now()
	for i := range 5000 {
		s.ask(`{"watch":["` + string(ids[i%2]) + `"]}`)
	}
	s.ask(`{"watch":["agent3"]}`)
	s.key(t, "pane:agent3")
	w.panes.mu.Lock()
	looks := w.panes.looks
	w.panes.mu.Unlock()
	if most := int(time.Since(began)/(50*time.Millisecond)) + 2; looks > most {
		t.Errorf("panes were looked at %d times, want %d at most", looks, most)
	}
	testworld.Wait(t, "only the last is watched", func() bool { return w.panes.watched() == 1 })
}
