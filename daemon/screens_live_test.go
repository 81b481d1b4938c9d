//go:build live

package daemon_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/spawn"
)

// hubWindows are the windows that the hub has, its own among them.
func (w *world) hubWindows() []string {
	out, _ := w.tmux("", "list-windows", "-t", "="+spawn.HubSession+":", "-F", "#{window_name}")
	return strings.Fields(out)
}

// Browsers that are cut at any moment leave no window in the hub.
func TestCutBrowsersLeaveNoWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.up(painter{}, "agent1", "agent2")
	w.start()
	base, header := w.web()
	url := "ws" + strings.TrimPrefix(base, "http") + "/ws?watch=agent1,agent2"
	testworld.WaitOr(w, func() bool { return len(w.hubWindows()) == 1 }, w.log)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		// One at a time: while another looks too, there is nothing to link.
		c, _, err := websocket.DefaultDialer.DialContext(w.ctx, url, header)
		testworld.Must(t, err)
		moment := time.NewTimer(time.Duration(random.Int64N(int64(time.Millisecond))))
		<-moment.C
		c.NetConn().Close()
	}
	testworld.WaitOr(w, func() bool { return len(w.hubWindows()) == 1 }, func() string {
		return fmt.Sprintf("%d windows in the hub\n%s", len(w.hubWindows()), w.log())
	})
	testworld.Equal(t, testworld.Got(w.tmux("", "list-windows", "-a", "-f", "#{window_linked}", "-F", "#{session_name}"))(t), "", "sessions with linked windows")
}

// A hub that has grown out of all bounds, as an earlier netsky could leave it, is
// removed at once, and costs the daemon nothing.
func TestOvergrownHub(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.up(painter{}, "agent1")
	before := identities(w.statuses())
	const links = 5000
	lines := "new-session -d -s " + spawn.HubSession + " -n hub 'exec cat'\nset-option -t =" + spawn.HubSession + ": @linked-hub 1\n" +
		strings.Repeat("link-window -d -s =agent1:0 -t ="+spawn.HubSession+":\n", links)
	if out, err := w.tmux(lines, "source-file", "-"); err != nil {
		t.Fatal(out, err)
	}
	if n := len(w.hubWindows()); n != links+1 {
		t.Fatalf("the hub has %d windows", n)
	}
	began := time.Now()
	p := w.start()
	testworld.WaitOr(w, func() bool { return len(w.hubWindows()) == 1 }, w.log)
	w.web()
	if took, most := time.Since(began), 20*time.Second; took > most {
		t.Errorf("up after %v, want %v at most", took, most)
	}
	if mb := w.memory(p, "VmRSS"); mb > 100 {
		t.Errorf("the daemon has %.0f MB", mb)
	}
	if now := identities(w.statuses()); !maps.Equal(now, before) {
		t.Errorf("agents are %v, were %v", now, before)
	}
}

// down takes an overgrown hub with it when there is no daemon.
func TestDownOvergrownHub(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.up(quiet{"exec cat"}, "agent1", "agent2")
	lines := "new-session -d -s " + spawn.HubSession + " -n hub 'exec cat'\nset-option -t =" + spawn.HubSession + ": @linked-hub 1\n" +
		strings.Repeat("link-window -d -s =agent1:0 -t ="+spawn.HubSession+":\nlink-window -d -s =agent2:0 -t ="+spawn.HubSession+":\n", 1500)
	if out, err := w.tmux(lines, "source-file", "-"); err != nil {
		t.Fatal(out, err)
	}
	ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	testworld.Got(w.l.Down(ctx, spawn.DownOptions{All: true, Force: true}))(t)
	// A server whose last session has ended answers for a moment yet.
	if out, err := w.tmux("", "list-sessions"); err == nil && out != "" {
		t.Errorf("sessions are left: %s", out)
	}
}

// A browser that flips its panes as fast as it can costs the daemon no memory, and
// is shown what it asked for last.
func TestFlippedPanes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var ids []agent.ID
	var names []string
	for i := range 8 {
		ids = append(ids, agent.ID(fmt.Sprintf("agent%d", i+1)))
		names = append(names, `"`+string(ids[i])+`"`)
	}
	w.up(painter{}, ids...)
	p := w.start()
	base, header := w.web()
	testworld.WaitOr(w, func() bool { return len(w.hubWindows()) == 1 }, w.log)
	c, _, err := websocket.DefaultDialer.DialContext(w.ctx, "ws"+strings.TrimPrefix(base, "http")+"/ws", header)
	testworld.Must(t, err)
	defer c.Close()
	var last atomic.Pointer[string]
	go func() {
		for {
			var e struct{ Key string }
			if c.ReadJSON(&e) != nil {
				return
			}
			last.Store(&e.Key)
		}
	}()
	half := len(names) / 2
	most := 0.0
	for i := range 40_000 {
		ask := `{"watch":[` + strings.Join(names[i%2*half:][:half], ",") + `]}`
		testworld.Must(t, c.WriteMessage(websocket.TextMessage, []byte(ask)))
		if i%1000 == 0 {
			most = max(most, w.memory(p, "VmRSS"))
		}
	}
	testworld.Must(t, c.WriteMessage(websocket.TextMessage, []byte(`{"watch":["agent8"]}`)))
	testworld.WaitOr(w, func() bool { return len(w.hubWindows()) == 2 }, func() string {
		return fmt.Sprintf("%d windows in the hub\n%s", len(w.hubWindows()), w.log())
	})
	last.Store(nil)
	testworld.WaitOr(w, func() bool { k := last.Load(); return k != nil && *k == "pane:agent8" }, func() string { return "agent8 is not shown" })
	if most = max(most, w.memory(p, "VmRSS")); most > 64 {
		t.Errorf("the daemon had %.0f MB", most)
	}
	t.Logf("%.0f MB", most)
}
