package spawn_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"netsky/agent"
	"netsky/bus"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/spawn"
	"netsky/store"
)

// plan is the agent's with the start that is seen.
func (w *world) plan(r spawn.Runtime, name string) spawn.Plan {
	w.Helper()
	p := w.plans(r, agent.ID(name))[0]
	p.Start = w.status(name).Start
	return p
}

func TestRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(stays(), "agent0", "agent1")
	claimed := w.claim("agent1", "in the dead receiver's hands")
	waits := w.mail("agent1", "before the restart")
	before, other := w.status("agent1"), w.status("agent0")
	program := processOf(before.PID)

	var steps []spawn.Step
	p, err := w.l.Restart(w.ctx, w.plan(stays(), "agent1"), "daemon", func(p spawn.Progress) { steps = append(steps, p.Step) })
	if err != nil || p.Agent != "agent1" || p.Step != spawn.StepReady || p.State != agent.Idle {
		t.Fatalf("Restart = %+v, %v", p, err)
	}
	if len(steps) != 2 || steps[0] != spawn.StepSpawned || steps[1] != spawn.StepReady {
		t.Errorf("told %v", steps)
	}
	w.gone(program, "the program before")
	after := w.status("agent1")
	if after.State != agent.Idle || after.Start == before.Start || !after.Wanted || after.By != before.By {
		t.Errorf("after: %+v", after)
	}
	if now := w.status("agent0"); now.Start != other.Start || now.PID != other.PID {
		t.Errorf("agent0 was touched: %+v", now)
	}
	for place, id := range map[bus.Place]string{bus.Inbox: waits, bus.Claimed: claimed} {
		list, err := w.bus.List("agent1", place, 0)
		if err != nil || len(list) != 1 || list[0].Envelope.ID != id {
			t.Errorf("%v: %v, %v, want %s", place, list, err, id)
		}
	}
	testworld.Equal(t, w.lastLog("agent1"), "restarted: its receiver had gone (by daemon)", "logged")
}

// claim is a message that a receiver had claimed when it died.
func (w *world) claim(name, text string) string {
	w.Helper()
	id := w.mail(name, text)
	names, err := w.bus.Names(agent.ID(name), bus.Inbox)
	if err != nil || len(names) != 1 {
		w.Fatalf("inbox: %v, %v", names, err)
	}
	box := w.home.Path(home.Mailbox(agent.ID(name)))
	testworld.Must(w, os.Rename(filepath.Join(box, "inbox", names[0]), filepath.Join(box, "claimed", names[0])))
	return id
}

// lastLog is the newest line on record about an agent, of those that warn.
func (w *world) lastLog(name string) string {
	w.Helper()
	db := testworld.Got(store.OpenRead(w.ctx, w.home))(w)
	defer db.Close()
	list, err := db.Logs(w.ctx, store.LogFilter{Actor: agent.ID(name), Level: store.LevelWarn})
	if err != nil || len(list.Items) == 0 {
		w.Fatalf("logs: %v, %v", list, err)
	}
	return list.Items[0].Text
}

func TestRestartRefused(t *testing.T) {
	t.Parallel()
	errStands := errors.New("something stands in the way")
	for _, tt := range []struct {
		name   string
		change func(w *world, p *spawn.Plan)
		want   error
	}{
		{"no start", func(_ *world, p *spawn.Plan) { p.Start = "" }, spawn.ErrOtherStart},
		{"another start", func(_ *world, p *spawn.Plan) { p.Start = agent.NewStart() }, spawn.ErrOtherStart},
		{"wanted down", func(w *world, _ *spawn.Plan) {
			testworld.Must(w, home.Desired(w.home).Set("agent1", false, "owner"))
		}, spawn.ErrUnwanted},
		{"a receiver is there", func(w *world, _ *spawn.Plan) {
			lock := testworld.Got(w.home.Lock("receiver-agent1"))(w)
			w.Cleanup(func() { lock.Unlock() })
		}, spawn.ErrHeard},
		{"its runtime can't start", func(_ *world, p *spawn.Plan) { p.Runtime = hindered{stays(), errStands} }, errStands},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.upReady(stays(), "agent1")
			before := w.status("agent1")
			program := processOf(before.PID)
			p := w.plan(stays(), "agent1")
			tt.change(w, &p)
			if got, err := w.l.Restart(w.ctx, p, "daemon", nil); !errors.Is(err, tt.want) {
				t.Errorf("Restart = %+v, %v, want %v", got, err, tt.want)
			}
			w.alive(program, "the program")
			if now := w.status("agent1"); now.Start != before.Start || now.State != agent.Idle {
				t.Errorf("after: %+v", now)
			}
		})
	}
}

// A hindered runtime's agents can't be started.
type hindered struct {
	program
	err error
}

func (h hindered) Check(context.Context, agent.Launch) error { return h.err }

func TestRestartDead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(sh(ready+"read x; exit 4"), "agent1")
	p := w.plan(stays(), "agent1")
	w.tmux("send-keys", "-t", "=agent1:", "Enter")
	w.becomes("agent1", agent.Dead)
	testworld.ErrorIs(t, testworld.Err(w.l.Restart(w.ctx, p, "daemon", nil)), spawn.ErrEnded, "Restart of a dead one")
	testworld.Equal(t, w.status("agent1").State, agent.Dead, "after")
}

// It waits for an up or a down, and does not start again what that has ended.
func TestRestartWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(stays(), "agent1")
	p := w.plan(stays(), "agent1")
	lock := testworld.Got(w.home.Lock("up"))(t)
	blocked, done := make(chan spawn.Progress, 10), make(chan error)
	go func() {
		_, err := w.l.Restart(w.ctx, p, "daemon", func(p spawn.Progress) { blocked <- p })
		done <- err
	}()
	if p := <-blocked; p.Step != spawn.StepBlocked || p.Agent != "agent1" {
		t.Errorf("told %+v", p)
	}
	testworld.Must(t, home.Desired(w.home).Set("agent1", false, "owner"))
	lock.Unlock()
	testworld.ErrorIs(t, <-done, spawn.ErrUnwanted, "Restart after a down")
}

// A start that fails after the end is told as one.
func TestRestartFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(stays(), "agent1")
	p, err := w.l.Restart(w.ctx, w.plan(sh("echo no; exit 3"), "agent1"), "daemon", nil)
	if err != nil || p.Step != spawn.StepFailed || p.Err == nil {
		t.Errorf("Restart = %+v, %v", p, err)
	}
	if st := w.status("agent1"); st.State != agent.Dead || !st.Wanted {
		t.Errorf("after: %+v", st)
	}
}

// Who made a report is told by its field, whatever words it uses.
func TestHeard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(sh(ready+"exec sleep 1000"), "agent1")
	st := w.status("agent1")
	for _, c := range []struct {
		r           agent.Report
		heard, asks bool
	}{
		{agent.Report{State: agent.Waiting, Evidence: "its pane"}, true, true},
		{agent.Report{State: agent.Waiting, Evidence: "its pane", By: agent.ByPane}, false, true},
		{agent.Report{State: agent.Waiting, Evidence: "no receiver holds its mailbox"}, true, true},
		{agent.Report{State: agent.Waiting, Evidence: "another word", By: agent.ByWatchdog}, true, false},
		{agent.Report{State: agent.Idle}, true, false},
		{agent.Report{State: agent.Starting}, false, false},
	} {
		c.r.Start = st.Start
		testworld.Must(t, w.home.SaveReport("agent1", c.r))
		testworld.Equal(t, w.l.Heard(st), c.heard, "%+v: heard", c.r)
		testworld.Equal(t, w.status("agent1").Asks(), c.asks, "%+v: asks", c.r)
	}
}
