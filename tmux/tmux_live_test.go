//go:build live

package tmux_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsky/internal/testworld"
	"netsky/tmux"
)

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
