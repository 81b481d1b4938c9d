package spawn_test

import (
	"errors"
	"os"
	"testing"

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

// Nor is one whose home was removed below it.
func TestUpWithoutItsHome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(stays(), "agent1")
	p := processOf(w.status("agent1").PID)
	testworld.Must(t, os.RemoveAll(w.home.Root()))
	testworld.Got(w.home.Make())(t)
	for _, end := range w.up(stays(), "agent1") {
		if end.Step != spawn.StepFailed || !errors.Is(end.Err, spawn.ErrUnknown) {
			t.Errorf("%s: %s %v, want failed as unknown", end.Agent, end.Step, end.Err)
		}
	}
	w.down(spawn.DownOptions{Agents: ids("agent1"), Force: true})
	w.gone(p, "its program")
	w.upReady(stays(), "agent1")
}
