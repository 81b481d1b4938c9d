package daemon_test

import (
	"slices"
	"testing"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/store"
)

// Two daemons in turn see the same agents: nothing is told of them twice.
func TestKilledTellsNothingTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.up(demo{}, "agent0", "agent1")
	db := w.db()
	for killed := range 3 { // each daemon after a killed one says so once
		p := w.start()
		testworld.WaitOr(w, func() bool {
			for _, st := range w.statuses() {
				if s, err := db.Session(w.ctx, st.Start); err != nil || s.State != agent.Idle {
					return false
				}
			}
			logs, err := db.Logs(w.ctx, store.LogFilter{Part: "daemon"})
			return err == nil && len(logs.Items) == killed
		}, func() string { return "not on record" })
		w.kill(p)
	}
	for _, st := range w.statuses() {
		s, err := db.Session(w.ctx, st.Start)
		if err != nil || s.Ended != 0 || s.State != agent.Idle {
			t.Errorf("%s: %+v %v", st.Agent, s, err)
		}
	}
	if got := w.deathLogs(db); !slices.Equal(got, nil) {
		t.Errorf("%q", got)
	}
}
