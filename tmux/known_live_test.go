//go:build live

package tmux_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

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

// A server that does not answer is named after the deadline, never waited for.
func TestHungServer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	panes := mustStart(t, s, idle("agent1"))
	client := testworld.Got(s.Control(t.Context(), "agent1"))(t)
	pid := serverPID(t, s)
	testworld.Must(t, syscall.Kill(pid, syscall.SIGSTOP))
	resume := func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
	t.Cleanup(resume)
	for what, call := range map[string]func(context.Context) error{
		"Panes":   func(ctx context.Context) error { _, err := s.Panes(ctx); return err },
		"Start":   func(ctx context.Context) error { _, err := s.Start(ctx, nil, nil); return err },
		"Kill":    func(ctx context.Context) error { return s.Kill(ctx, panes...) },
		"Capture": func(ctx context.Context) error { _, err := s.Capture(ctx, "=agent1", tmux.Capture{}); return err },
		"Paste":   func(ctx context.Context) error { return s.Paste(ctx, "=agent1", "x") },
		"Control": func(ctx context.Context) error { _, err := s.Control(ctx, "agent1"); return err },
		"Do":      func(ctx context.Context) error { _, err := client.Do(ctx, "list-sessions"); return err },
		"Stop":    func(ctx context.Context) error { return s.Stop(ctx) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		err := call(ctx)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), s.Socket) {
			t.Errorf("%s() with a hung server = %v, want a deadline error that names %s", what, err, s.Socket)
		}
	}
	done := make(chan error, 1)
	go func() { done <- client.Close() }()
	select {
	case err := <-done:
		testworld.Equal(t, err, nil, "Close() with a hung server")
	case <-time.After(time.Minute):
		t.Error("Close() with a hung server hangs")
	}
	resume()
	// What was asked before may still be carried out; the server answers again.
	testworld.Equal(t, testworld.Err(s.Panes(t.Context())), nil, "Panes() afterwards")
}
