package tmux_test

import (
	"slices"
	"testing"

	"netsky/internal/testworld"
	"netsky/tmux"
)

// TestWitness: gotmux reads of each session, window, pane, title, size and option what this
// package believes.
func TestWitness(t *testing.T) {
	t.Parallel()
	s := newServer(t, "@run", "@none")
	agree := func(what string, want ...string) {
		t.Helper()
		if have, err := testworld.Agree(t.Context(), s); err != nil || !slices.Equal(have, want) {
			t.Fatalf("%s: sessions %v, %v, want %v", what, have, err, want)
		}
	}
	agree("before a server")
	one, ten := idle("agent1"), idle("agent10")
	one.Tags, one.Width, one.Height = map[string]string{"@run": "7 of: 'a'"}, 90, 30
	ten.Command = `printf '\033]2;a ü, #{pid} 3:b\033\\'; exec sleep 1000`
	panes := mustStart(t, s, one, ten)
	agree("two sessions", "agent1", "agent10")
	if p := find(t, panes, "agent1"); p.Width != 90 || p.Height != 30 || p.Tags["@run"] != "7 of: 'a'" {
		t.Errorf("Start() = %+v", p)
	}
	plain(t, s, "new-window", "-d", "-t", "=agent1:", "sleep 1000")
	plain(t, s, "split-window", "-d", "-h", "-t", "=agent1:1", "sleep 1000")
	plain(t, s, "copy-mode", "-t", "=agent10:")
	agree("windows, panes and a mode", "agent1", "agent10")
	plain(t, s, "set-option", "-g", "remain-on-exit", "on", ";", "respawn-pane", "-k", "-t", "=agent1:0", "true")
	testworld.Wait(t, "a dead pane", func() bool {
		return slices.ContainsFunc(mustPanes(t, s), func(p tmux.Pane) bool { return p.Dead })
	})
	agree("a dead pane", "agent1", "agent10")
	testworld.Must(t, s.Kill(t.Context(), find(t, panes, "agent1")))
	agree("one ended", "agent10")

	// A title that the witness can't read.
	const odd = "a-:-b"
	plain(t, s, "select-pane", "-t", "=agent10:", "-T", odd)
	testworld.Equal(t, find(t, mustPanes(t, s), "agent10").Title, odd, "the title")
	if seen, err := testworld.Witness(t.Context(), plain(t, s, "display-message", "-p", "#{socket_path}")); err == nil {
		t.Errorf("the witness reads %q; what ARCHITECTURE says of gotmux is no longer so", seen)
	}
	mustStop(t, s)
	agree("stopped")
}
