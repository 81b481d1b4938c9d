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

// leavesSlowly is a ready agent that takes a second to end when its terminal goes.
func leavesSlowly() program {
	return sh("trap 'sleep 1; exit' HUP\n" + ready + "while :; do sleep 0.1; done")
}

// An up right after the server has been killed, whose programs are still ending,
// waits for them and starts the agents again.
func TestUpWaitsForOrphans(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(leavesSlowly(), "agent1", "agent2")
	before := w.statuses()
	w.tmux("kill-server")
	for _, p := range w.up(stays(), "agent1", "agent2") {
		if p.Step != spawn.StepReady {
			t.Errorf("%s: %s %v, want it started again", p.Agent, p.Step, p.Err)
		}
	}
	for id, st := range w.statuses() {
		if st.State != agent.Idle || st.Start == before[id].Start {
			t.Errorf("%s: %s, start %s, was %s", id, st.State, st.Start, before[id].Start)
		}
	}
}

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

// Nor is one whose home was removed below it.
func TestUpWithoutItsHome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(stays(), "agent1")
	p := processOf(w.status("agent1").PID)
	if err := os.RemoveAll(w.home.Root()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.home.Make(); err != nil {
		t.Fatal(err)
	}
	for _, end := range w.up(stays(), "agent1") {
		if end.Step != spawn.StepFailed || !errors.Is(end.Err, spawn.ErrUnknown) {
			t.Errorf("%s: %s %v, want failed as unknown", end.Agent, end.Step, end.Err)
		}
	}
	w.down(spawn.DownOptions{Agents: ids("agent1"), Force: true})
	w.gone(p, "its program")
	w.upReady(stays(), "agent1")
}

// A tmux server whose socket a cleaner has removed still has its agents: they are seen,
// ended with it, and as long as it can't be reached, nothing is called proved.
func TestSocketRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(stays(), "agent1")
	server := processOf(w.serverPID())
	if err := os.Remove(w.socket); err != nil {
		t.Fatal(err)
	}
	if st := w.status("agent1"); st.State != agent.Idle {
		t.Errorf("agent1 is %s", st.How())
	}
	w.upReady(stays(), "agent2")
	if now := w.serverPID(); now != server.PID {
		t.Errorf("agent2 is on server %d, agent1 on %d", now, server.PID)
	}
	if err := server.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Signal(unix.SIGCONT) })
	if err := os.Remove(w.socket); err != nil {
		t.Fatal(err)
	}
	if _, err := w.l.Down(w.ctx, spawn.DownOptions{All: true, Force: true}); err == nil {
		t.Error("a down that can't see the sessions succeeds")
	}
	left, err := w.l.Remnants(w.ctx)
	if err == nil || !slices.ContainsFunc(left, func(r spawn.Remnant) bool { return r.PID == server.PID }) {
		t.Errorf("left %v, %v, want server %d", left, err, server.PID)
	}
	if err := server.Signal(unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	testworld.Wait(t, "tmux to be asked again", func() bool {
		_, err := w.l.Inspect(w.ctx)
		return err == nil
	})
	w.down(spawn.DownOptions{All: true, Force: true})
	w.gone(server, "the server")
}
