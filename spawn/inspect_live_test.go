//go:build live

package spawn_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"netsky/internal/testworld"
)

// A verb that has waited for a tmux that hangs does not wait for it again.
func TestHungServerAskedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(demo{}, "agent0")
	server := w.serverPID()
	testworld.Must(t, syscall.Kill(server, syscall.SIGSTOP))
	defer syscall.Kill(server, syscall.SIGCONT)
	ctx := context.WithoutCancel(w.ctx) // without a deadline, as a verb's
	testworld.Fails(t, testworld.Err(w.l.Inspect(ctx)), "no answer")
	began := time.Now()
	testworld.Fails(t, testworld.Err(w.l.TickerUp(ctx)), "", "the ticker: no error")
	if list, err := w.l.Remnants(ctx); err == nil || len(list) == 0 {
		t.Errorf("remnants: %s, %v; want the processes, and an error", remnants(list), err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("asked again: %v", took)
	}
}
