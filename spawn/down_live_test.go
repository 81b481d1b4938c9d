//go:build live

package spawn_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/testworld"
	"netsky/spawn"
)

// A turn that runs is waited for.
func TestDownBusy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(demo{}, "agent0", "agent1")
	id := w.mail("agent1", "/busy 5s")
	w.becomes("agent1", agent.Busy)
	if got := w.down(spawn.DownOptions{}); got["agent1"] != "asked acked ended" {
		t.Errorf("%v", got)
	}
	e, ok, err := w.bus.FindAnswer(w.ctx, "", agent.Owner, id, time.Time{})
	if err != nil || !ok || !strings.Contains(e.Envelope.Text, "is done") {
		t.Errorf("the busy turn's answer: %v %v %v", e.Envelope.Text, ok, err)
	}
}

// Interrupted, down ends nobody that is still at work: who was asked goes when its
// turn ends, and Finish ends what is left of it then.
func TestDownInterrupted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(demo{}, "agent0", "agent1")
	interrupted := func() map[string]string {
		t.Helper()
		w.mail("agent1", "/busy 5s")
		w.becomes("agent1", agent.Busy)
		ctx, cancel := context.WithCancel(w.ctx)
		defer cancel()
		log, err := w.l.Down(ctx, spawn.DownOptions{Agents: ids("agent1"), Report: func(p spawn.DownProgress) {
			if p.Step == spawn.DownAsked {
				cancel()
			}
		}})
		var stopped *spawn.InterruptedError
		if !errors.As(err, &stopped) || !slices.Equal(stopped.Agents, ids("agent1")) {
			t.Errorf("down: %v", err)
		}
		return steps(log)
	}
	if got := interrupted(); got["agent1"] != "asked left" {
		t.Errorf("down: %v", got)
	}
	st := w.status("agent1")
	if !st.Alive() || st.Wanted || st.Finished() {
		t.Errorf("after the interrupt: %+v", st)
	}
	if done, err := w.l.Finish(w.ctx, st); !done || err != nil || !w.status("agent1").Alive() {
		t.Errorf("Finish of what is at work: %v, %v", done, err)
	}
	// Taken back, it stays.
	for _, p := range w.up(demo{}, "agent1") {
		if p.Step != spawn.StepAlready {
			t.Errorf("up: %s %v", p.Step, p.Err)
		}
	}
	w.answers("agent1")
	if now := w.status("agent1"); now.Start != st.Start || w.asked("agent1") {
		t.Errorf("after an up: %+v", now)
	}
	interrupted()
	testworld.WaitOr(w, func() bool { st = w.status("agent1"); return st.Finished() }, func() string { return "it does not finish" })
	if done, err := w.l.Finish(w.ctx, st); !done || err != nil || w.status("agent1").Pane() != "" {
		t.Errorf("Finish: %v, %v, %+v", done, err, w.status("agent1"))
	}
	testworld.Equal(t, remnants(w.l.Unproved()), "", "unproved")
}

// Down that finds another at work does not slip past it.
func TestDownWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(stays(), "agent1")
	lock := testworld.Got(w.home.Lock("up"))(t)
	defer lock.Unlock()
	ctx, cancel := context.WithTimeout(w.ctx, 100*time.Millisecond)
	defer cancel()
	began := false
	o := spawn.DownOptions{Within: func(end func(...agent.ID) error) error { began = true; return end() }}
	if _, err := w.l.Down(ctx, o); !errors.Is(err, home.ErrLocked) || began {
		t.Errorf("%v, begun: %v", err, began)
	}
	log, err := w.l.Down(w.ctx, spawn.DownOptions{Force: true})
	if got := steps(log); !strings.HasSuffix(got["agent1"], "ended") || got[""] != "warning" || !errors.Is(err, home.ErrLocked) {
		t.Errorf("with force: %v, %v; want agent1 ended, and an error as the other may start more", got, err)
	}
}

// A down with force that has not waited for an up ends, once that up is through,
// what it has started meanwhile.
func TestDownAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(stays(), "agent1")
	lock, err := w.home.Lock("up")
	testworld.Must(t, err)
	defer lock.Unlock()
	passes := 0
	_, err = w.l.Down(w.ctx, spawn.DownOptions{Force: true, Within: func(end func(...agent.ID) error) error {
		err := end()
		if passes++; passes > 1 {
			return err
		}
		if err := lock.Unlock(); err != nil {
			t.Error(err)
		}
		w.upReady(stays(), "agent2")
		return err
	}})
	if s := w.sessions(); err != nil || passes != 2 || s != "" {
		t.Errorf("%v, %d passes, left: %q", err, passes, s)
	}
}

// Whatever an agent has started goes with it, however it got away from its
// session; nobody else's process does.
func TestDownEndsAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := `
setsid sleep 1000 & echo $! >setsid
( ( sleep 1000 & echo $! >forked ) & )
setsid env -i /bin/sleep 1000 & echo $! >bare
setsid sh -c 'trap "" TERM HUP; echo $$ >deaf; while :; do sleep 0.2; done' &
` + ready + "while :; do sleep 60; done"
	w.upReady(sh(script), "agent1")
	var own []proc.Process
	for _, name := range []string{"setsid", "forked", "bare", "deaf"} {
		own = append(own, w.process(filepath.Join(w.work(), name)))
	}
	st := w.status("agent1")
	strangers := []proc.Process{
		w.stranger("agent1", "NETSKY_START="+st.Start+"x", "AGENT_N=1"),
		w.stranger("netsky", "run", "agent1"),
		w.stranger("sleep"),
	}
	w.down(spawn.DownOptions{AckWithin: 100 * time.Millisecond})
	for _, p := range append(own, processOf(st.PID)) {
		w.gone(p, "what agent1 started")
	}
	for _, p := range strangers {
		w.alive(p, "a stranger")
	}

	// The same when the session is gone already.
	w.upReady(sh(`setsid sh -c 'echo $$ >left; exec sleep 1000' & `+ready+"exec sleep 1000"), "agent1")
	left := w.process(filepath.Join(w.work(), "left"))
	w.tmux("kill-session", "-t", "=agent1")
	w.becomes("agent1", agent.Dead)
	w.alive(left, "what is left")
	var list []spawn.Remnant
	testworld.WaitOr(w, func() bool { // the others take a moment to end
		var err error
		list, err = w.l.Remnants(w.ctx)
		return err == nil && remnants(list) == fmt.Sprintf("process %d of agent1", left.PID)
	}, func() string { return "remnants: " + remnants(list) })
	if got := w.down(spawn.DownOptions{AckWithin: 100 * time.Millisecond}); got["agent1"] != "ended" {
		t.Errorf("%v", got)
	}
	w.gone(left, "what was left")
}
