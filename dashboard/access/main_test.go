package access_test

import (
	"context"
	"io/fs"
	"net/url"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus"
	"netsky/dashboard"
	"netsky/dashboard/access"
	"netsky/dashboard/live"
)

const patience = 60 * time.Second

func mustDo(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func mustHome(tb testing.TB) home.Dir {
	tb.Helper()
	dir, err := os.MkdirTemp("", "n")
	mustDo(tb, err)
	tb.Cleanup(func() { os.RemoveAll(dir) })
	h, err := home.At(dir)
	mustDo(tb, err)
	_, err = h.Make()
	mustDo(tb, err)
	return h
}

type oneAgent struct{}

func (oneAgent) Agents(context.Context) ([]live.Agent, error) {
	return []live.Agent{{ID: "agent0", State: agent.Idle}}, nil
}

// options are those of a dashboard without records.
func options(tb testing.TB) dashboard.Options {
	tb.Helper()
	h := mustHome(tb)
	b := bus.New(h, bus.Options{})
	mustDo(tb, b.Make("agent0"))
	mustDo(tb, b.Make("owner"))
	token, err := access.Token(h)
	mustDo(tb, err)
	return dashboard.Options{
		Home: h, Token: token, Agents: oneAgent{}, Bus: b, Poll: 5 * time.Millisecond,
		Records: func() (dashboard.Reader, error) { return nil, fs.ErrNotExist },
	}
}

// serve serves a dashboard until the test ends.
func serve(tb testing.TB, o dashboard.Options, on string) (s *dashboard.Server, addr string) {
	tb.Helper()
	s, err := dashboard.New(o)
	mustDo(tb, err)
	l, err := s.Listen(tb.Context(), on)
	mustDo(tb, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for end := time.Now().Add(patience); strings.Contains(stacks(), "netsky/dashboard/access.(") || strings.Contains(stacks(), "netsky/dashboard/live.("); <-tick.C {
			if time.Now().After(end) {
				tb.Fatalf("goroutines are left:\n%s", stacks())
			}
		}
	})
	return s, l.Addr().String()
}

func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// code returns the code of a link.
func code(tb testing.TB, s *dashboard.Server) string {
	tb.Helper()
	l, err := s.Link("https://box.example")
	mustDo(tb, err)
	u, err := url.Parse(l.URL)
	mustDo(tb, err)
	return u.Query().Get("code")
}
