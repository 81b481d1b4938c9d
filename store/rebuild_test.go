package store_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/testworld"
	"netsky/store"
)

// launch puts down what a start of an agent leaves in the home.
func launch(tb testing.TB, h home.Dir, id agent.ID, at time.Time) agent.Launch {
	tb.Helper()
	la := agent.Launch{Agent: id, Start: "start-of-" + string(id), Runtime: "codex", Dir: "/src/" + string(id),
		Argv: []string{"/bin/true"}, Resume: "thread-" + string(id), StartedMS: at.UnixMilli()}
	testworld.Must(tb, h.SaveLaunch(la))
	testworld.Must(tb, home.Desired(h).Set(string(id), true, "owner"))
	return la
}

// A database that was removed is made anew with what the home's files report.
func TestRebuilt(t *testing.T) {
	t.Parallel()
	h := testworld.Home(t)
	hour := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	three := 3
	root := launch(t, h, agent.Root, hour)
	testworld.Must(t, h.SaveReport(agent.Root, agent.Report{Start: root.Start, State: agent.Idle, SinceMS: hour.Add(time.Minute).UnixMilli()}))
	testworld.Must(t, h.SaveKeeper(agent.Root, agent.Keeper{Start: root.Start, Process: proc.Self(), StartedMS: root.StartedMS}))
	dead := launch(t, h, "agent1", hour)
	testworld.Must(t, h.SaveKeeper("agent1", agent.Keeper{Start: dead.Start, Process: proc.Process{PID: 1 << 22}, StartedMS: dead.StartedMS,
		EndedMS: hour.Add(time.Second).UnixMilli(), Status: &three}))
	launch(t, h, "agent2", hour)
	testworld.Must(t, home.Desired(h).Set("agent2", false, "owner"))
	testworld.Must(t, os.WriteFile(h.Path(home.LaunchDir, "agent3.json"), []byte("{"), 0o600)) // costs the others nothing

	db := mustOpen(t, h)
	actors := testworld.Got(db.Actors(t.Context()))(t)
	var got []string
	for _, a := range actors {
		got = append(got, strings.Join([]string{string(a.ID), a.Runtime, a.Dir, a.Desired}, " "))
	}
	want := "agent0 codex /src/agent0 up, agent1 codex /src/agent1 up, agent2 codex /src/agent2 down"
	testworld.Equal(t, strings.Join(got, ", "), want, "actors")
	session := func(start string) store.Session {
		t.Helper()
		return testworld.Got(db.Session(t.Context(), start))(t)
	}
	if s := session(root.Start); s.State != agent.Idle || s.Ended != 0 || s.Started != store.At(hour) || s.PID != os.Getpid() || s.Thread != root.Resume {
		t.Errorf("running session %+v", s)
	}
	if s := session(dead.Start); s.State != agent.Dead || s.Status == nil || *s.Status != 3 || s.Ended != store.At(hour.Add(time.Second)) {
		t.Errorf("dead session %+v", s)
	}
	if s := session("start-of-agent2"); s.State != agent.Down || s.Ended == 0 {
		t.Errorf("session that was ended %+v", s)
	}
	logs := testworld.Got(db.Logs(t.Context(), store.LogFilter{}))(t)
	var texts []string
	for _, l := range logs.Items {
		texts = append(texts, l.Level+" "+l.Text)
	}
	for _, want := range []string{"INFO started on codex in /src/agent0", "WARN died: exited 3",
		"WARN meta.db was missing: rebuilt from the files of agent0, agent1, agent2; older log entries and sessions are lost"} {
		testworld.Contains(t, strings.Join(texts, "\n"), want, "log")
	}
}

// The first database of a home, made while its first agents start, was not lost.
func TestNotRebuilt(t *testing.T) {
	t.Parallel()
	home := testworld.Home(t)
	launch(t, home, agent.Root, time.Now().Add(time.Second))
	db := mustOpen(t, home)
	logs := testworld.Got(db.Logs(t.Context(), store.LogFilter{Level: store.LevelWarn}))(t)
	testworld.Equal(t, len(logs.Items), 0, "log %v", logs.Items)
}

// A process that has the removed file open finds out without writing.
func TestRefresh(t *testing.T) {
	t.Parallel()
	h := testworld.Home(t)
	db := mustOpen(t, h)
	mustApply(t, db, store.AddLog{Text: "old"})
	launch(t, h, agent.Root, time.Now().Add(-time.Hour))
	testworld.Must(t, db.Refresh(t.Context()))
	if n := db.Replaced(); n != 0 {
		t.Fatalf("replaced %d times", n)
	}
	testworld.Must(t, os.Remove(h.Path(home.DBFile)))
	testworld.Must(t, db.Refresh(t.Context()))
	if _, err := db.Session(t.Context(), "start-of-agent0"); err != nil || db.Replaced() != 1 {
		t.Errorf("session: %v, replaced %d", err, db.Replaced())
	}
	// Put back from a copy that is older than the agent.
	testworld.Must(t, os.Remove(h.Path(home.DBFile)))
	old := testworld.Home(t)
	testworld.Must(t, mustOpen(t, old).Close())
	testworld.Must(t, os.Rename(old.Path(home.DBFile), h.Path(home.DBFile)))
	testworld.Must(t, db.Refresh(t.Context()))
	if _, err := db.Session(t.Context(), "start-of-agent0"); err != nil || db.Replaced() != 2 {
		t.Errorf("session: %v, replaced %d", err, db.Replaced())
	}
}

// Only meta.db is removed: SQLite must not play the log beside it into the new
// file, neither while a process has the old one open nor after a kill.
func TestRemovedWithoutItsLog(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		open bool
	}{{"open", true}, {"killed", false}} {
		t.Run(tt.name, func(t *testing.T) {
			h := testworld.Home(t)
			db := mustOpen(t, h)
			for range 3000 { // past the first checkpoint: the log alone is no whole database
				mustApply(t, db, store.AddLog{Text: strings.Repeat("x", 500)})
			}
			wal := testworld.Got(os.ReadFile(h.Path(home.DBFile + "-wal")))(t)
			if !tt.open {
				testworld.Must(t, db.Close())
				testworld.Must(t, os.WriteFile(h.Path(home.DBFile+"-wal"), wal, 0o600))
			}
			testworld.Must(t, os.Remove(h.Path(home.DBFile)))
			next := mustOpen(t, h)
			mustApply(t, next, store.AddLog{Text: "new"})
			if tt.open {
				mustApply(t, db, store.AddLog{Text: "new too"})
				testworld.Must(t, db.Check(t.Context()))
			}
			testworld.Must(t, next.Check(t.Context()))
			logs := testworld.Got(next.Logs(t.Context(), store.LogFilter{}))(t)
			for _, l := range logs.Items {
				if !strings.HasPrefix(l.Text, "new") {
					t.Fatalf("log %.20q came back", l.Text)
				}
			}
		})
	}
}
