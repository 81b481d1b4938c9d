//go:build live

package daemon_test

import (
	"fmt"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/daemon"
	"netsky/internal/testworld"
	"netsky/spawn"
	"netsky/watch/restart"
)

// A restart whose daemon is killed while the agents finish their turns is completed by the
// next daemon, which does not take their ends for deaths.
func TestPlannedRestartOutlivesDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start()
	w.up(demo{}, "agent0", "agent1")
	sent := w.mail("agent1", "/busy 10s")
	testworld.WaitOr(t, func() bool { return w.statuses().Find("agent1").State == agent.Busy }, func() string { return "not busy" })
	was := w.statuses()
	r := restart.Request{By: agent.Owner, Handoff: "go on"}
	for _, st := range was {
		r.Agents = append(r.Agents, restart.Agent{Agent: st.Agent, From: st.Start})
	}
	testworld.Must(t, restart.Submit(w.home, &r))
	testworld.Must(t, daemon.Wake(w.ctx, w.home))
	progress := func(id agent.ID) restart.Step {
		now, _, err := restart.Load(w.home, r.ID)
		testworld.Must(t, err)
		for _, a := range now.Agents {
			if a.Agent == id {
				return a.Step
			}
		}
		return ""
	}
	testworld.WaitOr(t, func() bool { return progress("agent1") == restart.Asked && progress("agent0") == restart.Ended },
		func() string { return fmt.Sprintf("not asked: %s %s", progress("agent0"), progress("agent1")) })
	w.kill(p)
	w.answered(sent)
	testworld.WaitOr(t, func() bool { return w.statuses().Find("agent1").Died() }, func() string { return "agent1 does not end" })
	w.start()
	testworld.WaitOr(t, func() bool { return progress("agent0") == restart.Ready && progress("agent1") == restart.Ready },
		func() string {
			return fmt.Sprintf("not back: %s %s %+v", progress("agent0"), progress("agent1"), w.statuses())
		})
	for _, st := range w.statuses() {
		if !st.Alive() || st.Start == was.Find(st.Agent).Start || !st.Wanted {
			t.Errorf("%+v", st)
		}
		w.answered("handoff-" + r.ID + "-" + string(st.Agent))
	}
	for _, e := range w.events() {
		if strings.Contains(e, "died") || strings.Contains(e, "ended at once") {
			t.Error(e)
		}
	}
	testworld.Equal(t, testworld.Err(w.l.Down(w.ctx, spawn.DownOptions{By: "owner", Force: true})), nil)
}
