package cli_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"netsky/internal/testworld"
)

func mustWorld(t testing.TB) *world {
	t.Helper()
	w := testworld.Got(newWorld())(t)
	t.Cleanup(func() {
		if err := w.end(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// must runs a command in the world and returns what it says.
func (w *world) must(t testing.TB, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := w.command(ctx, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// A screen is a terminal of 140 by 40 that a person sits at.
type screen struct {
	t      *testing.T
	world  *world
	socket string
	name   string
}

func (w *world) mustScreen(t *testing.T, name, shell string) *screen {
	t.Helper()
	s := &screen{t: t, world: w, socket: filepath.Join(w.dir, "o"), name: name}
	t.Cleanup(func() {
		exec.Command("tmux", "-S", s.socket, "kill-server").Run() // gone already if the test has failed early
	})
	s.tmux("-f", "/dev/null", "new-session", "-d", "-s", name, "-x", "140", "-y", "40", shell)
	s.shows(`\$|#`)
	return s
}

// tmux asks the server that the screen is on. Its own prefix is not pressed
// here: what keys sends goes to the program in the pane.
func (s *screen) tmux(args ...string) string {
	s.t.Helper()
	return s.world.must(s.t, "tmux", append([]string{"-S", s.socket}, args...)...)
}

func (s *screen) types(text, key string) {
	s.t.Helper()
	s.tmux("send-keys", "-t", "="+s.name+":", "-l", text)
	s.keys(key)
}

func (s *screen) keys(keys ...string) {
	s.t.Helper()
	s.tmux(append([]string{"send-keys", "-t", "=" + s.name + ":"}, keys...)...)
}

func (s *screen) text() string {
	s.t.Helper()
	return s.tmux("capture-pane", "-p", "-t", "="+s.name+":")
}

// shows waits until the screen matches, lacks until it doesn't.
func (s *screen) shows(pattern string) { s.t.Helper(); s.wait(pattern, true) }
func (s *screen) wait(pattern string, want bool) {
	s.t.Helper()
	re := regexp.MustCompile(pattern)
	text := ""
	testworld.WaitOr(s.t, func() bool { text = s.text(); return re.MatchString(text) == want }, func() string {
		return fmt.Sprintf("the screen matches %q: %v, want %v\n%s", pattern, !want, want, text)
	})
}
