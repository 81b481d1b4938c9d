package tmux_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/internal/testworld"
	"netsky/tmux"
)

// recorder is a session whose program writes all that is typed to a file, and a
// function that waits until the file holds want.
func recorder(t *testing.T, s *tmux.Server, setup string) (tmux.Pane, func(want string)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "typed")
	x := tmux.Session{Name: "agent1", Command: "stty raw -echo; " + setup + " printf ready; exec cat > " + file}
	p := find(t, mustStart(t, s, x, idle("agent10")), "agent1")
	testworld.Wait(t, "agent1 ready", func() bool {
		screen, err := s.Capture(t.Context(), p.ID, tmux.Capture{})
		return err == nil && strings.HasPrefix(screen, "ready")
	})
	return p, func(want string) {
		t.Helper()
		testworld.Wait(t, "typed text", func() bool {
			got, err := os.ReadFile(file)
			if err == nil && len(got) > len(want) {
				t.Fatalf("typed %.200q, want %.200q", got, want)
			}
			return err == nil && string(got) == want
		})
	}
}

func TestPaste(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	p, typed := recorder(t, s, `printf '\033[?2004h';`)
	long := strings.Repeat("200 KB; of ü \\ text\n", 10000) + "%end 1 2 1;"
	testworld.Must(t, s.Paste(t.Context(), p.ID, long))
	want := "\x1b[200~" + long + "\x1b[201~"
	typed(want)
	testworld.Must(t, s.Paste(t.Context(), "=agent1", "-x;"))
	want += "\x1b[200~-x;\x1b[201~"
	typed(want)
	for _, bad := range []string{"\x1b[201~\x03rm -rf x\n", "a\rb", "\x00", "\x7f", "\u009b31m", "\xff", "\x1b"} {
		testworld.Fails(t, s.Paste(t.Context(), p.ID, bad), "", "Paste(%q) = nil", bad)
	}
	testworld.Equal(t, s.Paste(t.Context(), p.ID, ""), nil, "Paste(nothing)")
	testworld.Must(t, s.Keys(t.Context(), p.ID, "x"))
	typed(want + "x")
	testworld.Equal(t, plain(t, s, "list-buffers"), "", "buffers left")
}

func TestKeys(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	p, typed := recorder(t, s, "")
	testworld.Must(t, s.Keys(t.Context(), p.ID, "Enter", "C-c", "Escape", "run the tests;", "-l", "a b", "$HOME", "~"))
	typed("\r\x03\x1brun the tests;-la b$HOME~")
	testworld.Equal(t, s.Keys(t.Context(), p.ID, strings.Repeat("k", 40000)), nil, "Keys() with more than an argument list holds")
}

// What does not reach the program is an error, and never goes to a neighbour.
func TestTargets(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	testworld.ErrorIs(t, s.Keys(t.Context(), "%0", "x"), tmux.ErrNoServer, "Keys() without a server")
	p, typed := recorder(t, s, "")
	mustStart(t, s, idle("other10")) // tmux takes a beginning of one name, and of no other, for it
	calls := map[string]func(target string) error{
		"Keys":  func(target string) error { return s.Keys(t.Context(), target, "x") },
		"Paste": func(target string) error { return s.Paste(t.Context(), target, "x") },
		"Capture": func(target string) error {
			_, err := s.Capture(t.Context(), target, tmux.Capture{})
			return err
		},
	}
	for what, call := range calls {
		for _, target := range []string{"%99", "@99", "$99", "=agent", "=agent100", "=other1"} {
			testworld.ErrorIs(t, call(target), tmux.ErrNotFound, "%s(%s)", what, target)
		}
		for _, target := range []string{"agent1", "", "=", "%", "{last}", "=agent1:0", "agent1:", "=a*"} {
			if err := call(target); err == nil || errors.Is(err, tmux.ErrNotFound) {
				t.Errorf("%s(%s) = %v, want a refusal", what, target, err)
			}
		}
	}
	plain(t, s, "copy-mode", "-t", p.ID)
	for _, what := range []string{"Keys", "Paste"} {
		testworld.ErrorIs(t, calls[what](p.ID), tmux.ErrInMode, "%s() in copy mode", what)
	}
	plain(t, s, "send-keys", "-t", p.ID, "-X", "cancel")
	testworld.Must(t, calls["Keys"](p.ID))
	typed("x")
	plain(t, s, "set-option", "-g", "remain-on-exit", "on")
	plain(t, s, "new-session", "-d", "-s", "dead", "true")
	testworld.Wait(t, "dead pane", func() bool { return find(t, mustPanes(t, s), "dead").Dead })
	for _, what := range []string{"Keys", "Paste"} {
		testworld.ErrorIs(t, calls[what]("=dead"), tmux.ErrNotFound, "%s() to a dead pane", what)
	}
	testworld.Equal(t, plain(t, s, "list-buffers"), "", "buffers left")
}
