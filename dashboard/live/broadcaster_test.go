package live_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"netsky/dashboard/live"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/view"
)

// A source is Records and Agents: one agent, whose detail is long and another at
// each look, until the last step.
type source struct{ step, last atomic.Int64 }

func (s *source) Agents(context.Context) ([]view.Agent, error) {
	n := s.step.Load()
	if n < s.last.Load() {
		n = s.step.Add(1)
	}
	return []view.Agent{{ID: "agent0", Detail: fmt.Sprintf("step %d ", n) + strings.Repeat("x", 1<<20)}}, nil
}

func (s *source) Logs(context.Context, store.LogFilter) (store.List[store.Log], error) {
	return store.List[store.Log]{}, nil
}

func (s *source) DataVersion(context.Context) (int64, error) { return s.step.Load(), nil }

// Of a browser that does not read only the keys that are due are kept, and when it
// reads again it gets few events, the last of them the latest.
func TestFrozenBrowser(t *testing.T) {
	const steps = 60
	s := &source{}
	s.last.Store(steps)
	b := live.New(live.Options{
		Records: func() (live.Reader, error) { return s, nil }, Agents: s,
		Approvals: func() ([]live.Approval, error) { return nil, nil },
		Log:       slog.New(slog.DiscardHandler), Now: time.Now, Poll: time.Millisecond, WriteWait: testworld.Patience,
	})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.ServeSocket(w, r, live.Subscription{After: -1})
	}))
	defer srv.Close()
	defer b.Close()
	c, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(srv.URL, "http"), nil)
	testworld.Must(t, err)
	defer c.Close()
	testworld.Wait(t, "the last step", func() bool {
		last := s.step.Load() == steps
		if n := b.Due(); n > 4 { // hello, records, approvals, the agent
			t.Fatalf("%d keys are due", n)
		}
		return last
	})
	c.SetReadDeadline(time.Now().Add(testworld.Patience))
	for events := 0; ; {
		_, data, err := c.ReadMessage()
		testworld.Must(t, err)
		if strings.Contains(string(data[:min(len(data), 100)]), `"key":"agent:agent0"`) {
			events++
		}
		if strings.Contains(string(data[:min(len(data), 500)]), fmt.Sprintf("step %d ", steps)) {
			if events >= steps/2 {
				t.Errorf("%d events of %d steps", events, steps)
			}
			return
		}
	}
}
