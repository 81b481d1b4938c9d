//go:build live

package spawn_test

import (
	"errors"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/spawn"
)

// An agent whose session a person has renamed runs on where nobody finds it: up
// does not call that up, and ends nothing.
func TestUpSaysUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(stays(), "agent1")
	p := processOf(w.status("agent1").PID)
	w.tmux("rename-session", "-t", "=agent1", "mine")
	for _, end := range w.up(stays(), "agent1") {
		if end.Step != spawn.StepFailed || !errors.Is(end.Err, spawn.ErrUnknown) {
			t.Errorf("%s: %s %v, want failed as unknown", end.Agent, end.Step, end.Err)
		}
	}
	w.alive(p, "its program")
	w.down(spawn.DownOptions{Agents: ids("agent1")})
	w.gone(p, "its program")
}

// A tmux server whose socket a cleaner has removed still has its agents: they are seen,
// ended with it, and as long as it can't be reached, nothing is called proved.
func TestSocketRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(stays(), "agent1")
	server := processOf(w.serverPID())
	testworld.Must(t, os.Remove(w.socket))
	if st := w.status("agent1"); st.State != agent.Idle {
		t.Errorf("agent1 is %s", st.How())
	}
	w.upReady(stays(), "agent2")
	testworld.Equal(t, w.serverPID(), server.PID, "agent2 is on server")
	testworld.Must(t, server.Signal(unix.SIGSTOP))
	t.Cleanup(func() { _ = server.Signal(unix.SIGCONT) })
	testworld.Must(t, os.Remove(w.socket))
	testworld.Fails(t, testworld.Err(w.l.Down(w.ctx, spawn.DownOptions{All: true, Force: true})), "", "a down that can't see the sessions succeeds")
	left, err := w.l.Remnants(w.ctx)
	if err == nil || !slices.ContainsFunc(left, func(r spawn.Remnant) bool { return r.PID == server.PID }) {
		t.Errorf("left %v, %v, want server %d", left, err, server.PID)
	}
	testworld.Must(t, server.Signal(unix.SIGCONT))
	testworld.Wait(t, "tmux to be asked again", func() bool {
		_, err := w.l.Inspect(w.ctx)
		return err == nil
	})
	w.down(spawn.DownOptions{All: true, Force: true})
	w.gone(server, "the server")
}
