//go:build live

package daemon_test

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"netsky/agent"
	"netsky/daemon"
	"netsky/dashboard/access"
	"netsky/home"
	"netsky/internal/testworld"
)

// painter is a runtime whose program never stops printing.
type painter struct{ sh }

func (painter) Silent() {}

// Prepare has the agent be this test's program: one process, where a script would start many.
func (painter) Prepare(_ context.Context, l *agent.Launch) error {
	self, err := os.Executable()
	l.Argv, l.Env = []string{self}, append(l.Env, painterRole+"=1")
	return err
}

// A browser follows all panes, and comes back by itself when the daemon has gone.
type browser struct {
	w *world

	mu   sync.Mutex // guards what follows
	seen map[string]int
}

func (b *browser) run(ctx context.Context, watch []string) {
	for ctx.Err() == nil {
		b.follow(ctx, watch)
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// follow reads events until the connection ends.
func (b *browser) follow(ctx context.Context, watch []string) {
	serves := func() (by home.Holder, base string) {
		by, _ = b.w.home.LockHolder(agent.DaemonName)
		data, _ := b.w.home.ReadFile(daemon.URLFile, 4096)
		return by, string(data)
	}
	by, base := serves()
	if by.PID == 0 || base == "" {
		return
	}
	token, err := access.Token(b.w.home)
	if err != nil {
		return
	}
	u := strings.TrimSpace(base)
	h := http.Header{"Authorization": {"Bearer " + token}, "Origin": {u}}
	c, r, err := websocket.DefaultDialer.DialContext(ctx, strings.Replace(u, "http", "ws", 1)+"/ws", h)
	if err != nil {
		if by2, base2 := serves(); r != nil && by2 == by && base2 == base { // or it was another's, on a dead one's port
			b.w.Errorf("the dashboard answers %s", r.Status)
		}
		return
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	if c.WriteJSON(map[string]any{"watch": watch}) != nil {
		return
	}
	for {
		var e struct {
			Key  string
			Data json.RawMessage
		}
		if c.ReadJSON(&e) != nil {
			return
		}
		b.mu.Lock()
		b.seen[e.Key]++
		b.mu.Unlock()
	}
}

// again forgets what was seen, and waits until all panes change anew.
func (b *browser) again(watch []string) {
	b.w.Helper()
	b.mu.Lock()
	clear(b.seen)
	b.mu.Unlock()
	testworld.WaitOr(b.w, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, a := range watch {
			if b.seen["pane:"+a] < 3 {
				return false
			}
		}
		return true
	}, func() string {
		b.mu.Lock()
		defer b.mu.Unlock()
		seen, _ := json.Marshal(b.seen)
		return "a browser sees only " + string(seen) + "\n" + b.w.log()
	})
}

// A daemon that is killed at any moment while browsers look at busy panes harms
// no agent, and the browsers see all of it again once there is another.
func TestKilledUnderBrowsers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const kills = 50
	ids, watch := []agent.ID{"agent0", "agent1", "agent2", "agent3"}, []string{"agent0", "agent1", "agent2", "agent3"}
	w.up(painter{}, ids...)
	before := identities(w.statuses())
	ctx, cancel := context.WithCancel(w.ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	browsers := make([]*browser, 3)
	for i := range browsers {
		browsers[i] = &browser{w: w, seen: make(map[string]int)}
		wg.Go(func() { browsers[i].run(ctx, watch) })
	}
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for i := range kills {
		p := w.start()
		if i%10 == 0 {
			for _, b := range browsers {
				b.again(watch)
			}
		}
		moment := time.NewTimer(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
		<-moment.C
		w.kill(p)
		if now := identities(w.statuses()); !maps.Equal(now, before) {
			t.Fatalf("kill %d: agents are %v, were %v", i, now, before)
		}
	}
	w.start()
	for _, b := range browsers {
		b.again(watch)
	}
}
