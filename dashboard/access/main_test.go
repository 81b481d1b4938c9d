package access_test

import (
	"context"
	"io/fs"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/dashboard"
	"netsky/dashboard/access"
	"netsky/internal/testworld"
	"netsky/view"
)

type oneAgent struct{}

func (oneAgent) Agents(context.Context) ([]view.Agent, error) {
	return []view.Agent{{ID: "agent0", State: agent.Idle}}, nil
}

// options are those of a dashboard without records.
func options(tb testing.TB) dashboard.Options {
	tb.Helper()
	h := testworld.Home(tb)
	token := testworld.Got(access.Token(h))(tb)
	return dashboard.Options{
		Home: h, Token: token, Agents: oneAgent{}, Bus: testworld.Bus(tb, h, "agent0", "owner"), Poll: 5 * time.Millisecond,
		Records: func() (dashboard.Reader, error) { return nil, fs.ErrNotExist },
	}
}

// serve serves a dashboard until the test ends.
func serve(tb testing.TB, o dashboard.Options, on string) (s *dashboard.Server, addr string) {
	tb.Helper()
	s = testworld.Got(dashboard.New(o))(tb)
	l := testworld.Got(s.Listen(tb.Context(), on))(tb)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
		testworld.WaitOr(tb, func() bool {
			left := stacks()
			return !strings.Contains(left, "netsky/dashboard/access.(") && !strings.Contains(left, "netsky/dashboard/live.(")
		}, stacks)
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
	l := testworld.Got(s.Link("https://box.example"))(tb)
	u := testworld.Got(url.Parse(l.URL))(tb)
	return u.Query().Get("code")
}
