package daemon_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/daemon"
	"netsky/internal/testworld"
	"netsky/spawn"
	"netsky/store"
)

// A start that its up did not record, and an end that its down did not, are put on
// record by the daemon.
func TestUnrecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.l.Journal.Close()
	w.l.Journal = nil // records nothing
	ids := []agent.ID{"agent1", "agent2"}
	w.up(demo{}, ids...)
	t.Cleanup(func() { w.l.Journal = store.NewJournal(w.home) })
	db := w.db()
	list := w.statuses()
	var s store.Session
	session := func(id agent.ID) bool {
		var err error
		s, err = db.Session(w.ctx, list.Find(id).Start)
		return err == nil
	}
	for _, id := range ids {
		testworld.WaitOr(w, func() bool { return session(id) && s.Runtime == "demo" && s.State == agent.Idle && s.Ended == 0 },
			func() string { return fmt.Sprintf("%s: its start is on record as %+v\n%s", id, s, w.log()) })
		a, err := db.Actor(w.ctx, id)
		if err != nil || a.Runtime != "demo" || a.Dir == "" {
			t.Errorf("%s: %+v, %v", id, a, err)
		}
	}
	testworld.Got(w.l.Down(w.ctx, spawn.DownOptions{Agents: ids, Force: true}))(t)
	testworld.Must(t, daemon.Wake(w.ctx, w.home))
	for _, id := range ids {
		testworld.WaitOr(w, func() bool { return session(id) && s.Ended != 0 },
			func() string { return fmt.Sprintf("%s: its end is on record as %+v\n%s", id, s, w.log()) })
		if s.State != agent.Down || s.Reason != "down" {
			t.Errorf("%s: ended as %+v", id, s)
		}
		logs := testworld.Got(db.Logs(w.ctx, store.LogFilter{Actor: id}))(t)
		for _, want := range []string{"started on demo", "down: found ended; the down that ended it did not record it"} {
			if n := len(slices.DeleteFunc(slices.Clone(logs.Items), func(l store.Log) bool { return !strings.Contains(l.Text, want) })); n != 1 {
				t.Errorf("%s: %d logs with %q in %v", id, n, want, logs.Items)
			}
		}
	}
}
