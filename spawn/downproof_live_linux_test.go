//go:build live

package spawn_test

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/spawn"
)

// What has left its session, its environment and its parent is found while the
// keeper lives, and ended with the agent: that nothing is left is proved.
func TestDownEndsWhatHasLeft(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"asked", "dead", "person"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r, left := w.leaver()
			w.upReady(r, "agent1")
			p := left()
			switch name {
			case "dead":
				_ = processOf(w.status("agent1").PID).Signal(syscall.SIGKILL)
				w.becomes("agent1", agent.Dead)
				w.alive(p, "what has left")
			case "person":
				// Nobody has looked below the keeper then, and it says so.
				w.tmux("kill-session", "-t", "=agent1:")
				testworld.WaitOr(w, func() bool { return len(w.unproved()) == 1 }, func() string { return "nothing is unproved" })
				w.alive(p, "what has left")
				return
			}
			w.down(spawn.DownOptions{Force: true})
			w.gone(p, "what has left")
			if list, err := w.l.Remnants(w.ctx); err != nil || len(list) != 0 {
				t.Errorf("remnants: %s, %v", remnants(list), err)
			}
			testworld.EqualList(t, w.unproved(), nil, "unproved")
		})
	}
}

// State that has gone, or can't be read, proves nothing: mailboxes and meta.db
// still say who was started. What was never started needs no proof.
func TestUnprovedWithoutState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(demo{}, "agent1")
	r, left := w.leaver() // else it may be proved
	w.upReady(r, "agent3")
	left()
	if err := w.bus.Make("agent7"); err != nil { // never started
		t.Fatal(err)
	}
	k := testworld.Got(w.home.LoadKeeper("agent3"))(t)
	testworld.Must(t, k.Own.Signal(syscall.SIGKILL))
	testworld.WaitOr(w, k.Own.Gone, func() string { return "the keeper lives" })
	w.down(spawn.DownOptions{Force: true})
	if list := w.unproved(); !slices.Equal(list, []string{"agent3"}) {
		t.Fatalf("unproved: %v, want agent3", list)
	}
	want := func(how string, names ...string) {
		t.Helper()
		list := w.unproved()
		for _, name := range names {
			if !slices.Contains(list, name) {
				t.Errorf("%s: unproved: %v, want %s", how, list, name)
			}
		}
	}
	state, away := w.home.Path("state"), filepath.Join(w.dir, "away")
	move := func(from, to string) {
		t.Helper()
		testworld.Must(t, os.Rename(from, to))
	}
	move(state, away)
	want("without state", "agent1", "agent3")
	testworld.Must(t, os.WriteFile(state, nil, 0o600))
	want("with state unreadable", "", "agent1", "agent3")
	testworld.Fails(t, testworld.Err(w.l.Remnants(w.ctx)), "", "with state unreadable: no word of it among the remnants")
	testworld.Must(t, os.Remove(state))
	// Made again it is empty; meta.db knows.
	testworld.Got(w.home.Make())(t)
	testworld.EqualList(t, w.unproved(), []string{"agent1", "agent3"}, "unproved")
	boxes := w.home.Path("channels")
	move(boxes, boxes+".away")
	want("without mailboxes", "agent1", "agent3")
	move(boxes+".away", boxes)
	w.upReady(demo{}, "agent3")
	w.down(spawn.DownOptions{Force: true})
	want("after another start", "agent1", "agent3")
}
