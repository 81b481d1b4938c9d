//go:build live

package tmux_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"netsky/internal/testworld"
	"netsky/tmux"
)

// A client is answered however much flows from the windows that come and go.
func TestFollowBusy(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var list []tmux.Session
	for i := range 8 {
		list = append(list, tmux.Session{
			Name: fmt.Sprintf("agent%d", i+1), Command: `exec /bin/sh -c 'while :; do printf "%0200d\n" 1 2 3 4 5 6 7 8 9; done'`,
		})
	}
	panes := mustStart(t, s, list...)
	c := mustHub(t, s)
	for range 3 {
		for _, p := range panes {
			testworld.Must(t, c.Follow(t.Context(), p.Window))
		}
		for _, p := range panes {
			mustScreen(t, c, p.ID, 0)
			testworld.Must(t, c.Unfollow(t.Context(), p.Window))
		}
	}
}

// A hub with thousands of links costs no list of panes anything, and gives way
// to the next.
func TestOvergrownHub(t *testing.T) {
	s := newServer(t)
	panes := mustStart(t, s, idle("agent1"), idle("agent2"))
	testworld.Must(t, mustHub(t, s).Close())
	overgrow := func() {
		cmd := plainCommand(s, "source-file", "-")
		cmd.Stdin = strings.NewReader(strings.Repeat("link-window -d -s =agent1:0 -t =hub:\nlink-window -d -s =agent2:0 -t =hub:\n", 2500))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if n := len(windows(t, s)); n < 5000 {
			t.Fatalf("the hub has %d windows", n)
		}
	}
	overgrow()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	testworld.EqualList(t, names(mustPanes(t, s)), []string{"agent1", "agent2"}, "Panes()")
	testworld.Equal(t, s.Kill(t.Context(), find(t, panes, "agent2")), nil)
	mustHub(t, s)
	testworld.Len(t, windows(t, s), 0, "the next hub")
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
		t.Errorf("used %d bytes", used)
	}
	testworld.EqualList(t, names(mustPanes(t, s)), []string{"agent1"}, "Panes()")
}

// However early its caller goes, OpenHub leaves no hub that nobody knows of, and
// Start says what was started.
func TestCancelled(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mustStart(t, s, idle("agent0"))
	for i := range 60 {
		ctx, cancel := context.WithCancel(t.Context())
		moment := time.AfterFunc(time.Duration(i)*200*time.Microsecond, cancel)
		c, err := s.OpenHub(ctx, "hub")
		if err == nil {
			err = errors.Join(c.Close(), s.CloseHub(t.Context(), "hub"))
		} else if errors.Is(err, context.Canceled) {
			err = nil
		}
		if got := plain(t, s, "list-sessions", "-F", "#{session_name}"); got != "agent0" || err != nil {
			t.Fatalf("after %d: sessions %q, %v", i, got, err)
		}
		panes, err := s.Start(ctx, nil, []tmux.Session{idle("agent1")})
		if there := strings.Contains(plain(t, s, "list-sessions", "-F", "#{session_name}"), "agent1"); there != (err == nil) {
			t.Fatalf("after %d: Start() = %v, session there: %v", i, err, there)
		}
		if err == nil {
			err = s.Kill(t.Context(), find(t, panes, "agent1"))
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		moment.Stop()
		cancel()
	}
}
