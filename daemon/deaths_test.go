package daemon_test

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/spawn"
	"netsky/store"
)

// A killing is one way for a program to end, and what has to be on record.
type killing struct {
	line   string         // typed at the pane, for the program to obey
	signal syscall.Signal // or sent to it
	status int
	name   string // of the signal
}

var killings = []killing{
	{line: "exit 0"}, {line: "exit 1", status: 1}, {line: "exit 3", status: 3}, {line: "exit 255", status: 255},
	{line: "kill -SEGV $$", name: "SIGSEGV"}, {line: "kill -ABRT $$", name: "SIGABRT"}, {line: "kill -PIPE $$", name: "SIGPIPE"},
	{signal: syscall.SIGKILL, name: "SIGKILL"}, {signal: syscall.SIGTERM, name: "SIGTERM"}, {signal: syscall.SIGHUP, name: "SIGHUP"},
}

// Each death is on record with how it ended and what the pane showed last, ten
// at a time, and three times over.
func TestDeaths(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	var ids []agent.ID
	for i := range killings {
		ids = append(ids, agent.Clone(i+1))
	}
	var took []time.Duration
	for round := range 3 {
		w.up(sh(ready+`read line; echo "last words of $AGENT_N"; eval "$line"`), ids...)
		db := w.db()
		list := w.statuses()
		// The daemon knows them: their programs are on record.
		for _, id := range ids {
			st := list.Find(id)
			testworld.WaitOr(w, func() bool {
				s, err := db.Session(w.ctx, st.Start)
				return err == nil && s.State == agent.Idle && s.Ended == 0
			}, func() string { return string(id) + ": not on record as idle\n" + w.log() })
		}
		began := time.Now()
		for i, k := range killings {
			w.end1(list.Find(ids[i]), k)
		}
		for i, k := range killings {
			st := list.Find(ids[i])
			var s store.Session
			testworld.WaitOr(w, func() bool {
				var err error
				s, err = db.Session(w.ctx, st.Start)
				return err == nil && s.Ended != 0
			}, func() string {
				return fmt.Sprintf("round %d: %s: its death is not on record\n%s", round, st.Agent, w.log())
			})
			took = append(took, time.Since(began))
			w.checkDeath(s, k)
			// A look each few seconds would find it too: what is tested is the watch.
			testworld.WaitOr(w, func() bool { return strings.Contains(w.log(), `"msg":"death","start":"`+st.Start+`"`) },
				func() string { return string(st.Agent) + ": its death was not watched\n" + w.log() })
		}
	}
	slices.Sort(took)
	t.Logf("%d deaths on record, the last of ten at once after %v, the median after %v", len(took), took[len(took)-1], took[len(took)/2])
}

// The death of an agent whose keeper was killed is on record with its time, and
// status shows that.
func TestDeathOfKeeper(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.up(sh(ready+"read line"), "agent1", "agent2")
	st := w.statuses().Find("agent1")
	db := w.db()
	testworld.WaitOr(w, func() bool { s, err := db.Session(w.ctx, st.Start); return err == nil && s.State == agent.Idle },
		func() string { return "not on record as idle\n" + w.log() })
	testworld.Wait(t, "the daemon's client is attached", func() bool { // tmux 3.3a dies of a session that ends meanwhile
		out, _ := w.tmux("", "list-clients", "-t", "="+spawn.HubSession, "-F", "#{client_control_mode}")
		return strings.TrimSpace(out) == "1"
	})
	k := testworld.Got(w.home.LoadKeeper("agent1"))(t)
	testworld.Must(t, k.Own.Signal(syscall.SIGKILL))
	testworld.WaitOr(w, func() bool {
		s, err := db.Session(w.ctx, st.Start)
		logs, lerr := db.Logs(w.ctx, store.LogFilter{Page: store.Page{Limit: 1}})
		return err == nil && s.State == agent.Dead && s.Reason == "died: its keeper was killed" && s.Ended != 0 &&
			lerr == nil && len(logs.Items) == 1 && logs.Items[0].Text == "died: its keeper was killed" && logs.Items[0].About == st.Start
	}, func() string { return "its death is not on record\n" + w.log() })
	if now := w.statuses().Find("agent1"); now.State != agent.Dead || now.Since.IsZero() || now.Detail != "its keeper was killed" {
		t.Errorf("status: %+v", now)
	}
	if now := w.statuses().Find("agent2"); now.State != agent.Idle {
		t.Errorf("the other: %+v", now)
	}
}

// end1 has one program end.
func (w *world) end1(st spawn.Status, k killing) {
	w.Helper()
	if k.line == "" {
		testworld.Must(w, syscall.Kill(st.PID, k.signal), "%s", st.Agent)
		return
	}
	argv := w.l.Tmux.Argv("send-keys", "-t", st.Pane(), "-l", k.line, ";", "send-keys", "-t", st.Pane(), "Enter")
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = w.l.Tmux.Environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("%s: %v: %s", st.Agent, err, out)
	}
}

func (w *world) checkDeath(s store.Session, k killing) {
	w.Helper()
	status := -1
	if s.Status != nil {
		status = *s.Status
	}
	want := k.status
	last := fmt.Sprintf("[%s exited: %d]", s.Actor, k.status)
	if k.name != "" {
		want, last = -1, fmt.Sprintf("[%s killed: %s]", s.Actor, k.name)
	}
	if s.State != agent.Dead || status != want || s.Signal != k.name || s.Reason != "died" {
		w.Errorf("%s: state %s, status %d, signal %q, reason %q; want %+v", s.Actor, s.State, status, s.Signal, s.Reason, k)
	}
	if !strings.HasSuffix(s.LastLines, last) || (k.line != "" && !strings.Contains(s.LastLines, "last words of "+s.Actor.N())) {
		w.Errorf("%s: last lines %q, want %q", s.Actor, s.LastLines, last)
	}
}

// deathLogs are the texts on record that tell of ends.
func (w *world) deathLogs(db *store.DB) (texts []string) {
	w.Helper()
	logs := testworld.Got(db.Logs(w.ctx, store.LogFilter{}))(w)
	for _, l := range logs.Items {
		if strings.HasPrefix(l.Text, "died") || strings.HasPrefix(l.Text, "all tmux sessions have ended") {
			texts = append(texts, string(l.Actor)+" "+l.Text)
		}
	}
	slices.Sort(texts)
	return texts
}

func (w *world) ended(db *store.DB, starts ...string) {
	w.Helper()
	for _, s := range starts {
		testworld.WaitOr(w, func() bool {
			x, err := db.Session(w.ctx, s)
			return err == nil && x.Ended != 0
		}, func() string { return s + ": has not ended on record\n" + w.log() })
	}
}

// A death is told once, however many daemons come to see it; and one that
// happened while none ran is not missed.
func TestDeathToldOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.start()
	w.up(demo{}, "agent0", "agent1", "agent2")
	db := w.db()
	list := w.statuses()
	w.mail("agent1", "/crash 3")
	w.ended(db, list.Find("agent1").Start)
	w.kill(first)
	syscall.Kill(list.Find("agent2").PID, syscall.SIGKILL)
	for killed := range 3 { // each daemon after a killed one says so once
		p := w.start()
		w.ended(db, list.Find("agent2").Start)
		testworld.WaitOr(w, func() bool {
			s, err := db.Session(w.ctx, list.Find("agent0").Start)
			logs, lerr := db.Logs(w.ctx, store.LogFilter{Part: "daemon"})
			return err == nil && lerr == nil && s.State == agent.Idle && s.Ended == 0 && len(logs.Items) == killed+1
		}, func() string { return "agent0 is not idle on record, or the daemons before are not\n" + w.log() })
		w.kill(p)
	}
	want := []string{"agent1 died: exited 3", "agent2 died: killed by SIGKILL"}
	testworld.EqualList(t, w.deathLogs(db), want)
}

// An agent that is replaced before the daemon has looked died all the same.
func TestDeathReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.up(demo{}, "agent0", "agent1")
	start := w.statuses().Find("agent1").Start
	syscall.Kill(w.statuses().Find("agent1").PID, syscall.SIGKILL)
	testworld.WaitOr(w, func() bool { // its death may not show at once
		w.up(demo{}, "agent1")
		return w.statuses().Find("agent1").Start != start
	}, func() string { return "not replaced" })
	db := w.db()
	w.ended(db, start)
	s, err := db.Session(w.ctx, start)
	if err != nil || s.Reason == store.EndedUnseen || s.State != agent.Dead || s.Signal != "SIGKILL" {
		t.Errorf("%+v %v", s, err)
	}
}

// What was wanted down has not died.
func TestDownIsNoDeath(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.up(demo{}, "agent0", "agent1", "agent2")
	db := w.db()
	list := w.statuses()
	testworld.Got(w.l.Down(w.ctx, spawn.DownOptions{}))(t)
	for _, id := range []agent.ID{"agent0", "agent1", "agent2"} {
		w.ended(db, list.Find(id).Start)
		if s, err := db.Session(w.ctx, list.Find(id).Start); err != nil || s.State != agent.Down || s.Reason != "down: finished" {
			t.Errorf("%s: %+v %v", id, s, err)
		}
	}
	testworld.EqualList(t, w.deathLogs(db), nil)
}

// What an up is about to bring back has not died: it was ended, and that is on record.
func TestUpIsNoDeath(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.up(demo{}, "agent1", "agent2")
	db := w.db()
	list := w.statuses()
	testworld.Got(w.l.Down(w.ctx, spawn.DownOptions{Agents: []agent.ID{"agent1"}}))(t)
	w.ended(db, list.Find("agent1").Start)
	lock := testworld.Got(w.home.Lock("up"))(t)
	defer lock.Unlock()
	testworld.Must(t, home.Desired(w.home).Set("agent1", true, "up"))
	w.mail("agent2", "/crash 4")
	w.ended(db, list.Find("agent2").Start) // for which it looked twice
	if got := w.deathLogs(db); len(got) != 1 || !strings.HasPrefix(got[0], "agent2 died: exited 4") {
		t.Errorf("on record: %q", got)
	}
}

// An up that brings back agents which are down is not taken for the loss of
// their sessions, though none has one yet.
func TestUpIsNoLoss(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := []agent.ID{"agent0", "agent1", "agent2"}
	w.up(demo{}, ids...)
	testworld.Got(w.l.Down(w.ctx, spawn.DownOptions{Force: true}))(t)
	lock := testworld.Got(w.home.Lock("up"))(t)
	testworld.Must(t, home.Desired(w.home).SetAll(ids, true, "up"))
	w.start()
	db := w.db()
	var start string
	for _, st := range w.statuses() {
		start = st.Start
	}
	testworld.WaitOr(w, func() bool { // it has looked
		s, err := db.Session(w.ctx, start)
		return err == nil && s.State == agent.Dead || err == nil && s.Ended != 0
	}, func() string { return "the daemon has not looked\n" + w.log() })
	plans := w.plans(demo{}, ids...)
	prepared := testworld.Got(w.l.Look(w.ctx, plans))(t)
	w.started(w.l.UpPrepared(w.ctx, spawn.UpOptions{Plans: plans, By: "owner", Prepared: prepared}))
	testworld.Must(t, lock.Unlock())
	testworld.EqualList(t, w.deathLogs(db), nil, "on record")
}
