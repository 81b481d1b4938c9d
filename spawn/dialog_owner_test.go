package spawn_test

import (
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/testworld"
)

// A dialog that covers an agent's pane is its state, unless the agent itself has reported that
// it waits: that dialog is gone when it says so, before the next look.
func TestLookOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	st, r := w.slowly("mute"), seenAsker{}
	reports := func(state agent.State) {
		t.Helper()
		testworld.Must(t, w.home.SaveReport("agent1", agent.Report{Start: st.Start, State: state, SinceMS: time.Now().UnixMilli(), Evidence: "a test"}))
		testworld.Got(w.l.Lookout(st, r).LookOver(w.ctx))(t)
	}
	reports(agent.Busy)
	if now := w.status("agent1"); now.State != agent.Waiting || now.Dialog != "trust" {
		t.Errorf("a dialog over a busy agent: %s (%s)", now.State, now.Detail)
	}
	reports(agent.Waiting)
	testworld.Must(t, w.home.SaveReport("agent1", agent.Report{Start: st.Start, State: agent.Idle, SinceMS: time.Now().UnixMilli(), Evidence: "a test"}))
	if now := w.status("agent1"); now.State != agent.Idle {
		t.Errorf("after its own question: %s (%s)", now.State, now.Detail)
	}
}
