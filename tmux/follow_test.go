package tmux_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"netsky/internal/testworld"
	"netsky/tmux"
)

// typist is a session whose program prints what is typed to it, in red, once it
// has the title ready.
func typist(name string) tmux.Session {
	return tmux.Session{Name: name, Command: `exec /bin/sh -c 'stty -echo; printf "\033]2;ready\033\\\\"; while read -r l; do printf "\033[31m%s\033[0m\n" "$l"; done'`}
}

// An ear hears which panes have printed something.
type ear struct {
	mu    sync.Mutex
	panes []string
}

func hear(c *tmux.Client) *ear {
	e := &ear{}
	c.Hear(func(pane []byte) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.panes = append(e.panes, string(pane))
	})
	return e
}

// heard are the panes since it was last called.
func (e *ear) heard() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.panes
	e.panes = nil
	return list
}

func mustScreen(tb testing.TB, c *tmux.Client, pane string, lines int) tmux.Screen {
	tb.Helper()
	return testworld.Got(c.Screen(tb.Context(), pane, lines))(tb)
}

// A followed window tells of what its panes print, and no other does; it stays a
// window of its own session, with its size.
func TestFollow(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	panes := mustStart(t, s, typist("agent1"), typist("agent2"))
	one, two := find(t, panes, "agent1"), find(t, panes, "agent2")
	testworld.Wait(t, "typists", func() bool {
		return !slices.ContainsFunc(mustPanes(t, s), func(p tmux.Pane) bool { return p.Title != "ready" })
	})
	c := mustHub(t, s)
	ear := hear(c)
	testworld.Must(t, c.Follow(t.Context(), one.Window))
	for _, p := range []tmux.Pane{two, one} {
		testworld.Must(t, s.Keys(t.Context(), p.ID, "hello", "Enter"))
	}
	testworld.Wait(t, "the words", func() bool { return strings.Contains(mustScreen(t, c, two.ID, 0).Text, "hello") })
	var list []string
	testworld.Wait(t, "word of "+one.ID, func() bool { list = append(list, ear.heard()...); return slices.Contains(list, one.ID) })
	if slices.Contains(list, two.ID) {
		t.Errorf("told of %s, which nobody follows", two.ID)
	}
	sc := mustScreen(t, c, one.ID, 10)
	if !strings.HasPrefix(sc.Text, "\x1b[31mhello") || sc.Width != 200 || sc.Height != 50 || sc.Row != 1 || sc.Column != 0 || !sc.Cursor || sc.History != 0 {
		t.Errorf("Screen() = %+v", sc)
	}
	testworld.EqualList(t, names(mustPanes(t, s)), []string{"agent1", "agent2"}, "while one is followed, Panes()")
	testworld.Must(t, c.Unfollow(t.Context(), one.Window))
	testworld.Equal(t, c.Unfollow(t.Context(), one.Window), nil, "Unfollow() again")
	ear.heard() // of before
	testworld.Must(t, s.Keys(t.Context(), one.ID, "again", "Enter"))
	testworld.Wait(t, "the words", func() bool { return strings.Contains(mustScreen(t, c, one.ID, 0).Text, "again") })
	if list := ear.heard(); len(list) > 0 {
		t.Errorf("told of %v after Unfollow", list)
	}
	testworld.Fails(t, c.Follow(t.Context(), "agent1"), "", "Follow() took a name for an id")
}

// What is above the screen is there on demand.
func TestScreenHistory(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	x := tmux.Session{Name: "agent1", Width: 20, Height: 5, Command: `exec /bin/sh -c 'seq 1 50; exec cat'`}
	p := find(t, mustStart(t, s, x), "agent1")
	c := mustHub(t, s)
	testworld.Wait(t, "the numbers", func() bool { return strings.Contains(mustScreen(t, c, p.ID, 0).Text, "50\n") })
	for lines, first := range map[int]string{0: "47", 10: "37", 1000: "1"} {
		sc := mustScreen(t, c, p.ID, lines)
		if !strings.HasPrefix(sc.Text, first+"\n") || sc.History != min(lines, 46) {
			t.Errorf("Screen(%d) begins %.10q with history %d, want %q", lines, sc.Text, sc.History, first)
		}
	}
}

// Several panes are captured together, each as it is alone; one that is not there
// takes nothing from the others.
func TestScreens(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	show := func(name, text string) tmux.Session {
		return tmux.Session{Name: name, Width: 40, Height: 5, Command: "exec /bin/sh -c 'printf %s \"" + text + "\"; exec cat'"}
	}
	panes := mustStart(t, s, show("agent1", "one"), show("agent2", "two $ %%end 1 1 1"), show("agent3", "three"))
	c := mustHub(t, s)
	want := map[string]string{}
	for name, text := range map[string]string{"agent1": "one", "agent2": "two $ %%end 1 1 1", "agent3": "three"} {
		id := find(t, panes, name).ID
		testworld.Wait(t, text, func() bool { return strings.HasPrefix(mustScreen(t, c, id, 0).Text, text+"\n") })
		want[id] = mustScreen(t, c, id, 0).Text
	}
	ids := []string{find(t, panes, "agent3").ID, "%999", "agent1; kill-server", find(t, panes, "agent1").ID, find(t, panes, "agent2").ID}
	for range 3 {
		list := c.Screens(t.Context(), ids, 0)
		for i, id := range ids {
			got := list[i]
			switch text, there := want[id]; {
			case there && (got.Err != nil || got.Text != text || got.Width != 40 || got.Height != 5):
				t.Errorf("%s: %+v, want %q", id, got, text)
			case id == "%999" && !errors.Is(got.Err, tmux.ErrNotFound), !there && got.Err == nil:
				t.Errorf("%s: %v", id, got.Err)
			}
		}
	}
	testworld.Len(t, c.Screens(t.Context(), nil, 0), 0, "Screens() of none")
	testworld.Must(t, c.Close())
	for _, got := range c.Screens(t.Context(), ids, 0) {
		testworld.Fails(t, got.Err, "", "an ended client shows %+v", got)
	}
}

// A followed session that is ended takes its programs with it: at once by Kill,
// and by Orphans when somebody else has ended it.
func TestFollowedEnds(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	panes := mustStart(t, s, idle("agent1"), idle("agent2"), idle("agent3"))
	c := mustHub(t, s)
	for _, p := range panes {
		testworld.Must(t, c.Follow(t.Context(), p.Window))
	}
	one, two, three := find(t, panes, "agent1"), find(t, panes, "agent2"), find(t, panes, "agent3")
	gone := func(p tmux.Pane) bool { return syscall.Kill(p.PID, 0) == syscall.ESRCH }
	testworld.Must(t, s.Kill(t.Context(), one))
	testworld.Wait(t, "the end of agent1's program", func() bool { return gone(one) })
	plain(t, s, "kill-session", "-t", "=agent2")
	ended, err := c.Orphans(t.Context())
	if err != nil || !slices.Equal(ended, []string{two.Window}) {
		t.Errorf("Orphans() = %v, %v, want %s, whose session is gone", ended, err, two.Window)
	}
	testworld.Wait(t, "the end of agent2's program", func() bool { return gone(two) })
	testworld.Equal(t, gone(three), false, "agent3's program ended, too")
}

// windows are those that the hub has beside its own.
func windows(tb testing.TB, s *tmux.Server) []string {
	tb.Helper()
	return strings.Fields(plain(tb, s, "list-windows", "-t", "=hub:", "-F", "#{window_id}"))[1:]
}

// A window is linked once however often it is followed, and what Follow returns
// is what became of it, whenever the caller has gone.
func TestFollowOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	p := find(t, mustStart(t, s, idle("agent1")), "agent1")
	c := mustHub(t, s)
	for range 3 {
		testworld.Must(t, c.Follow(t.Context(), p.Window))
	}
	testworld.EqualList(t, windows(t, s), []string{p.Window}, "followed three times, the hub")
	if err := c.Unfollow(t.Context(), p.Window); err != nil || len(windows(t, s)) > 0 {
		t.Fatalf("Unfollow() = %v, the hub has %v", err, windows(t, s))
	}
	cut := 0
	for range 2000 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		err := c.Follow(ctx, p.Window)
		if err == nil {
			err = c.Unfollow(t.Context(), p.Window)
		} else if errors.Is(err, context.Canceled) {
			cut++
			err = nil
		}
		testworld.Must(t, err)
		<-ctx.Done()
	}
	testworld.Len(t, windows(t, s), 0, "after %d of 2000 were cut, the hub", cut)
}

// A client whose link was never answered ends: nobody knows what its hub has.
func TestFollowUnanswered(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	p := find(t, mustStart(t, s, idle("agent1")), "agent1")
	c := mustHub(t, s)
	pid := serverPID(t, s)
	testworld.Must(t, syscall.Kill(pid, syscall.SIGSTOP))
	resume := func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
	t.Cleanup(resume)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	testworld.ErrorIs(t, c.Follow(ctx, p.Window), context.DeadlineExceeded, "a deadline")
	testworld.ErrorIs(t, testworld.Err(c.Do(t.Context(), "list-sessions")), tmux.ErrClosed, "Do() afterwards")
	resume()
	mustHub(t, s)
	testworld.Len(t, windows(t, s), 0, "the next hub")
}
