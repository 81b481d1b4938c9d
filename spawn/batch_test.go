//go:build live

package spawn_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/spawn"
	"netsky/store"
	"netsky/tmux"
)

// late gives the world's launcher a tmux program that does something else with
// what changes something: told is a line of shell for that. $REAL is tmux, $PID the
// server that runs. It returns how to let a stopped server go on.
func (w *world) late(told string) (wakes func()) {
	w.Helper()
	real := testworld.Got(exec.LookPath("tmux"))(w)
	pid := w.serverPID()
	dir := filepath.Join(w.dir, "slow")
	testworld.Must(w, os.Mkdir(dir, 0o700))
	script := fmt.Sprintf("#!/bin/sh\nREAL=%s PID=%d\ncase $* in\n*source-file*) %s ;;\nesac\nexec $REAL \"$@\"\n", real, pid, told)
	testworld.Program(w, filepath.Join(dir, "tmux"), script)
	before := w.l.Tmux
	w.l.Tmux = &tmux.Server{
		Socket: before.Socket, Conf: before.Conf, Tags: before.Tags, Env: append(before.Env[:len(before.Env):len(before.Env)], "PATH="+dir+":"+os.Getenv("PATH")),
	}
	wakes = func() {
		_ = syscall.Kill(pid, syscall.SIGCONT)
		w.l.Tmux = before
	}
	w.Cleanup(wakes)
	return wakes
}

// An up whose one call of tmux is not answered says that nobody knows what was
// started; the next look finds what was, and the next up starts the rest.
func TestUpUnanswered(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, told string
		started    bool
	}{
		{"not carried out", `kill -STOP $PID`, false},
		{"carried out", `$REAL "$@" >/dev/null 2>&1; kill -STOP $PID; exec sleep 1000`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.upReady(stays(), "agent0")
			wakes := w.late(tt.told)
			ctx, cancel := context.WithTimeout(w.ctx, 5*time.Second)
			defer cancel()
			var told []spawn.Progress
			ends, err := w.l.Up(ctx, spawn.UpOptions{
				Plans: w.plans(stays(), ids("agent0", "agent1", "agent2", "agent3")...), By: "owner",
				Report: func(p spawn.Progress) { told = append(told, p) },
			})
			if !errors.Is(err, tmux.ErrUnanswered) || !strings.Contains(err.Error(), "agent1 to agent3: cannot tell whether tmux started them") {
				t.Errorf("Up() = %v", err)
			}
			for _, p := range ends {
				if want := spawn.StepUnknown; p.Agent != "agent0" && p.Step != want {
					t.Errorf("%s: %s %v, want %s", p.Agent, p.Step, p.Err, want)
				}
			}
			for _, p := range told {
				if p.Agent != "agent0" && p.Step != spawn.StepSilent {
					t.Errorf("told of %s: %s %v", p.Agent, p.Step, p.Err)
				}
			}
			wakes()
			want := agent.Dead
			if tt.started {
				want = agent.Idle
			}
			before := map[agent.ID]spawn.Status{}
			for _, id := range ids("agent1", "agent2", "agent3") {
				before[id] = w.becomes(string(id), want)
			}
			for _, p := range w.up(stays(), "agent1", "agent2", "agent3") {
				now := w.status(string(p.Agent))
				if step := p.Step; (step == spawn.StepAlready) != tt.started || (now.Start == before[p.Agent].Start) != tt.started || now.State != agent.Idle {
					t.Errorf("%s at the next up: %s, %s", p.Agent, step, now.State)
				}
			}
		})
	}
}

// Many agents are started a few at a time; a batch that fails is the last, and those
// after it are neither tried nor wanted.
func TestUpBatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.l.AtOnce = 2
	w.upReady(stays(), "agent0", "agent1", "agent2", "agent3", "agent4")
	testworld.Equal(t, w.sessions(), "agent0 agent1 agent2 agent3 agent4", "sessions")
	plans := w.plans(stays(), ids("agent5", "agent6", "agent7", "agent8")...)
	for i := range 2 {
		plans[i].Runtime = program{"/bin/false"}
	}
	ends, err := w.l.Up(w.ctx, spawn.UpOptions{Plans: plans, By: "owner"})
	if !errors.Is(err, spawn.ErrUntried) || !strings.Contains(err.Error(), "agent7, agent8: ") {
		t.Errorf("Up() = %v, want the second batch untried", err)
	}
	for i, p := range ends {
		if p.Step != spawn.StepFailed || errors.Is(p.Err, spawn.ErrUntried) != (i >= 2) {
			t.Errorf("%s: %s %v", p.Agent, p.Step, p.Err)
		}
		if d, err := home.Desired(w.home).Load(string(p.Agent)); i >= 2 && err == nil && d.Up {
			t.Errorf("%s, which was not tried, is wanted up", p.Agent)
		}
	}
	for what, got := range w.down(spawn.DownOptions{Force: true}) {
		testworld.Equal(t, got, "ended", "down of %s", what)
	}
}

// A down that does not wait for an up of many stops it: what is not started yet stays
// so.
func TestUpBatchesBesideDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.l.AtOnce = 2
	ready := 0
	ends, err := w.l.Up(w.ctx, spawn.UpOptions{
		Plans: w.plans(stays(), ids("agent1", "agent2", "agent3", "agent4")...), By: "owner",
		Report: func(p spawn.Progress) {
			if p.Step != spawn.StepReady {
				return
			}
			if ready++; ready == 2 {
				testworld.Fails(t, testworld.Err(w.l.Down(w.ctx, spawn.DownOptions{Force: true})), "", "Down() beside an up = nil, want that more may be started")
			}
		},
	})
	if !errors.Is(err, spawn.ErrUntried) || !strings.Contains(err.Error(), "agent3, agent4: ") {
		t.Errorf("Up() = %v, want the second batch untried", err)
	}
	for i, p := range ends {
		testworld.Equal(t, errors.Is(p.Err, spawn.ErrUntried), i >= 2, "%s: %s %v", p.Agent, p.Step, p.Err)
	}
	testworld.Equal(t, w.sessions(), "", "sessions")
}

// A down whose tmux does not answer ends the agents by their processes and says so,
// with one error for all.
func TestDownUnanswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.l.AtOnce = 2
	w.upReady(stays(), "agent1", "agent2", "agent3")
	list := w.statuses()
	wakes := w.late(`kill -STOP $PID`)
	log, err := w.l.Down(w.ctx, spawn.DownOptions{Force: true})
	if !errors.Is(err, tmux.ErrUnanswered) || strings.Count(err.Error(), "no answer") != 1 {
		t.Errorf("Down() = %v, want one word about tmux", err)
	}
	for what, got := range steps(log) {
		if got != "ended" && what != "" { // it took long, which is told
			t.Errorf("%s: %s, want ended", what, got)
		}
	}
	for id, st := range list {
		w.gone(processOf(st.PID), string(id))
	}
	wakes()
	testworld.WaitOr(w, func() bool { return w.sessions() == "" }, func() string { return "sessions left: " + w.sessions() })
	db := testworld.Got(store.Open(w.ctx, w.home))(t)
	defer db.Close()
	for id, st := range list {
		if s, err := db.Session(w.ctx, st.Start); err != nil || s.Ended == 0 {
			t.Errorf("%s: %+v, %v; want its end on record", id, s, err)
		}
	}
}
