//go:build live

package tmux_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"netsky/internal/proc"
	"netsky/internal/testworld"
	"netsky/tmux"
)

// One that can't be reached has not ended, and none is started in its place.
func TestServerUnreachable(t *testing.T) {
	t.Parallel()
	s := knownServer(t)
	testworld.Must(t, os.Mkdir(filepath.Dir(s.Socket), 0o700))
	mustStart(t, s, idle("a"))
	t.Cleanup(func() { mustStop(t, s) })
	p := testworld.Got(proc.Find(serverPID(t, s)))(t)
	if got := s.Unreachable(t.Context()); len(got) != 0 {
		t.Errorf("Unreachable() = %v of a server that answers", got)
	}
	testworld.Must(t, p.Signal(syscall.SIGSTOP))
	t.Cleanup(func() { _ = p.Signal(syscall.SIGCONT) })
	testworld.Must(t, os.Remove(s.Socket))
	if panes, err := s.Panes(t.Context()); err == nil {
		t.Errorf("Panes() = %v without an error", names(panes))
	}
	if panes, err := s.Start(t.Context(), nil, []tmux.Session{idle("b")}); err == nil {
		t.Errorf("Start() = %v without an error", names(panes))
	}
	if got := s.Unreachable(t.Context()); !slices.Equal(got, []proc.Process{p}) {
		t.Errorf("Unreachable() = %v, want %v", got, p)
	}
	testworld.Must(t, p.Signal(syscall.SIGCONT))
	testworld.Wait(t, "the server to answer again", func() bool {
		panes, err := s.Panes(t.Context())
		return err == nil && slices.Equal(names(panes), []string{"a"})
	})
}

// A second server that took the socket hides the first one, which is back once that has
// exited.
func TestServerReplaced(t *testing.T) {
	t.Parallel()
	s := knownServer(t)
	testworld.Must(t, os.Mkdir(filepath.Dir(s.Socket), 0o700))
	mustStart(t, s, idle("a"))
	t.Cleanup(func() { mustStop(t, s) })
	first := serverPID(t, s)
	testworld.Must(t, os.Remove(s.Socket))
	if out, err := exec.Command("tmux", "-f", os.DevNull, "-S", s.Socket, "new-session", "-d", "-s", "b", "sleep 1000").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	testworld.EqualList(t, names(mustPanes(t, s)), []string{"b"}, "the second server")
	if got := s.Unreachable(t.Context()); len(got) != 1 || got[0].PID != first {
		t.Errorf("Unreachable() = %v, want %d", got, first)
	}
	plain(t, s, "kill-session", "-t", "b")
	testworld.Wait(t, "the first server", func() bool {
		panes, err := s.Panes(t.Context())
		return err == nil && slices.Equal(names(panes), []string{"a"})
	})
	if got := plain(t, s, "display-message", "-p", "#{pid}"); got != strconv.Itoa(first) {
		t.Errorf("server %s answers, want %d", got, first)
	}
}
