//go:build live

package daemon_test

import (
	"fmt"
	"syscall"
	"testing"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/store"
)

// All of tmux gone is one event.
func TestServerGone(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "told to end": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start()
			ids := []agent.ID{"agent0", "agent1", "agent2", "agent3"}
			w.up(demo{}, ids...)
			db := w.db()
			var starts []string
			for _, st := range w.statuses() {
				starts = append(starts, st.Start)
				testworld.WaitOr(w, func() bool {
					s, err := db.Session(w.ctx, st.Start)
					return err == nil && s.State == agent.Idle
				}, func() string {
					s, err := db.Session(w.ctx, st.Start)
					spool, _ := store.SpoolSize(w.home)
					return fmt.Sprintf("%s not on record as idle: %+v %v, spool %+v\n%s", st.Agent, s, err, spool, w.log())
				})
			}
			panes := testworld.Got(w.l.Tmux.Panes(w.ctx))(t)
			var server int
			fmt.Sscanf(panes[0].Server, "%d", &server)
			syscall.Kill(server, signal)
			w.ended(db, starts...)
			want := []string{" all tmux sessions have ended: agent0, agent1, agent2, agent3"}
			testworld.EqualList(t, w.deathLogs(db), want)
			w.up(demo{}, ids...)
			testworld.EqualList(t, w.deathLogs(db), want, "after the next up")
		})
	}
}
