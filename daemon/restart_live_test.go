//go:build live

package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/cost/breaker"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/spawn"
	"netsky/watch/backoff"
)

// due makes the next restart of an agent due now, as if its wait had passed.
func (w *world) due(id agent.ID) {
	w.Helper()
	r, err := backoff.Load(w.home, id)
	if err != nil || r.NextMS == 0 {
		w.Fatalf("%+v %v", r, err)
	}
	r.NextMS = 1
	testworld.Must(w, backoff.Save(w.home, id, r))
}

// That a new start runs proves nothing: one that has not reported in time has died again.
func TestRestartUnproved(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.up(w.r, "agent1")
	was := w.statuses().Find("agent1")
	mute := filepath.Join(w.r.dir, "mute")
	testworld.Must(t, os.WriteFile(mute, nil, 0o600))
	syscall.Kill(was.PID, syscall.SIGKILL)
	var st spawn.Status
	testworld.WaitOr(w, func() bool {
		st = w.statuses().Find("agent1")
		return st.Start != was.Start && st.State == agent.Starting && st.PID != 0
	}, func() string { return fmt.Sprintf("not started again: %+v\n%s", st, w.log()) })
	r, err := backoff.Load(w.home, "agent1")
	if err != nil || r.Tries != 1 || r.Proved != "" {
		t.Errorf("%+v %v", r, err)
	}
	r.TriedMS -= (2 * time.Minute).Milliseconds()
	testworld.Must(t, backoff.Save(w.home, "agent1", r))
	w.event("agent1 restarted, but not ready within 2m0s (attempt 1)")
	// It comes to life when its replacement has begun, which is then refused.
	testworld.WaitOr(w, func() bool {
		r, err = backoff.Load(w.home, "agent1")
		return err == nil && r.Died == st.Start
	}, func() string { return fmt.Sprintf("%s is not counted as died: %+v %v", st.Start, r, err) })
	r.From, r.NextMS = st.Start, time.Now().Add(5*time.Minute).UnixMilli()
	testworld.Must(t, backoff.Save(w.home, "agent1", r))
	testworld.Must(t, os.Remove(mute))
	w.event("agent1 restarted: ready")
	testworld.WaitOr(w, func() bool {
		st := w.statuses().Find("agent1")
		r, err := backoff.Load(w.home, "agent1")
		return err == nil && st.State == agent.Idle && r.Proved == st.Start && r.Died == ""
	}, func() string { return fmt.Sprintf("%+v", w.statuses().Find("agent1")) })
}

// Nothing is started that is wanted down, nor while an up or a down runs; and the owner's
// word makes void what was counted before.
func TestRestartObeys(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.up(w.r, "agent1", "agent2")
	was := w.statuses()
	lock := testworld.Got(w.home.Lock("up"))(t)
	for _, id := range []agent.ID{"agent1", "agent2"} {
		syscall.Kill(was.Find(id).PID, syscall.SIGKILL)
	}
	w.ended(w.db(), was.Find("agent1").Start, was.Find("agent2").Start)
	if got := w.events(); len(got) != 2 || w.plans.Load() != 0 {
		t.Errorf("while an up runs: %q", got)
	}
	testworld.Must(t, home.Desired(w.home).Set("agent1", false, "owner"))
	lock.Unlock()
	w.back(was.Find("agent2"))
	if st := w.statuses().Find("agent1"); st.Start != was.Find("agent1").Start || st.State != agent.Down {
		t.Errorf("%+v", st)
	}
	if r, err := backoff.Load(w.home, "agent1"); err != nil || !r.Zero() {
		t.Errorf("%+v %v", r, err)
	}
}

// The fifth death within ten minutes is a crash loop: status shows it, the owner is told
// once, and it ends with the owner's next up.
func TestCrashLoop(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.up(w.r, "agent1")
	st := w.statuses().Find("agent1")
	for range backoff.LoopDeaths - 1 {
		syscall.Kill(st.PID, syscall.SIGKILL)
		testworld.WaitOr(w, func() bool { r, err := backoff.Load(w.home, "agent1"); return err == nil && r.Died == st.Start }, w.log)
		w.due("agent1")
		st = w.back(st)
	}
	syscall.Kill(st.PID, syscall.SIGKILL)
	w.shows("agent1", agent.CrashLooping, "killed by SIGKILL")
	testworld.WaitOr(w, func() bool { return len(w.owned()) == 1 }, func() string { return fmt.Sprintf("%q", w.owned()) })
	if got := w.statuses().Find("agent1"); got.Restart != "5 deaths in 10 minutes; restart in 30m (attempt 5)" || got.Alive() {
		t.Errorf("%q", got.Restart)
	}
	mail := w.owned()[0]
	if !strings.HasPrefix(mail, "agent1 is in a crash loop: it died 5 times within 10 minutes, the last time killed by SIGKILL. It is started again every 30 minutes.\n") {
		t.Errorf("%q", mail)
	}

	// Another daemon knows of it, and tries it when its time has come; that it died again is
	// no news.
	w.stop()
	w.begin()
	w.shows("agent1", agent.CrashLooping, "")
	w.due("agent1")
	st = w.back(st)
	syscall.Kill(st.PID, syscall.SIGKILL)
	w.shows("agent1", agent.CrashLooping, "")
	if got := w.owned(); len(got) != 1 {
		t.Errorf("told the owner %q", got)
	}

	w.up(w.r, "agent1")
	if r, err := backoff.Load(w.home, "agent1"); err != nil || !r.Zero() {
		t.Errorf("%+v %v", r, err)
	}
	testworld.WaitOr(w, func() bool { n, err := w.unread(); return err == nil && n == 0 }, func() string { return "its mail is not settled" })
}

func (w *world) unread() (n int, err error) {
	shown, err := home.ShownMail(w.home).Names()
	if err != nil {
		return 0, err
	}
	names, err := w.bus.Mail(agent.Owner, false)
	for _, name := range names {
		if !shown[name] {
			n++
		}
	}
	return n, err
}

// All of tmux gone is one event and one message, and everybody comes back.
func TestRestartAll(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	ids := []agent.ID{"agent0", "agent1", "agent2", "agent3"}
	w.up(w.r, ids...)
	was := w.statuses()
	panes := testworld.Got(w.l.Tmux.Panes(w.ctx))(t)
	var server int
	fmt.Sscanf(panes[0].Server, "%d", &server)
	syscall.Kill(server, syscall.SIGKILL)
	for _, id := range ids {
		w.back(was.Find(id))
		w.event(string(id) + " restarted: ready")
	}
	var begun, other []string
	for _, e := range w.events() {
		switch {
		case strings.Contains(e, "restarting (attempt 1)"):
			begun = append(begun, strings.Fields(e)[0])
		case !strings.Contains(e, "restarted: ready"):
			other = append(other, e)
		}
	}
	if !slices.Equal(begun, []string{"agent0", "agent1", "agent2", "agent3"}) || len(other) != 1 || other[0] != "all tmux sessions have ended: agent0, agent1, agent2, agent3" {
		t.Errorf("begun %q, else %q", begun, other)
	}
	testworld.Wait(t, "the message about it", func() bool {
		got := w.owned()
		return len(got) == 1 && strings.HasPrefix(got[0], "All tmux sessions ended at once: agent0, agent1, agent2, agent3.")
	})
}

// An agent whose start hangs does not delay the others, nor the daemon's end.
func TestRestartBeside(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.hangs = "agent1"
	w.up(w.r, "agent1", "agent2")
	was := w.statuses()
	syscall.Kill(was.Find("agent1").PID, syscall.SIGKILL)
	testworld.WaitOr(w, func() bool { return w.plans.Load() > 0 }, func() string { return "not planned" })
	syscall.Kill(was.Find("agent2").PID, syscall.SIGKILL)
	w.back(was.Find("agent2"))
	w.stop()
}

// An agent that can't be started is tried again, later each time, and status says why.
func TestRestartFails(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.fails = "agent1"
	w.up(w.r, "agent1")
	was := w.statuses().Find("agent1")
	syscall.Kill(was.PID, syscall.SIGKILL)
	for n := range backoff.LoopDeaths {
		w.event(fmt.Sprintf("agent1 restart failed (attempt %d): no program; restart in ", n+1))
		if n == backoff.LoopDeaths-1 {
			break
		}
		w.due("agent1")
	}
	st := w.shows("agent1", agent.Dead, "killed by SIGKILL")
	if !strings.HasPrefix(st.Restart, "restart failed: no program; restart in 3") {
		t.Errorf("%q", st.Restart)
	}
	testworld.WaitOr(w, func() bool { return len(w.owned()) == 1 }, func() string { return fmt.Sprintf("%q", w.owned()) })
	if got := w.owned()[0]; !strings.HasPrefix(got, "agent1 is dead (killed by SIGKILL) and can't be restarted: no program\n") {
		t.Errorf("%q", got)
	}
}

// An agent is not started on an account that serves nobody; status says why. Once it serves
// again, it is.
func TestRestartOnTrippedAccount(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	testworld.Must(t, os.WriteFile(filepath.Join(w.r.dir, "account"), []byte("claude/me"), 0o600))
	w.up(w.r, "agent1")
	was := w.statuses().Find("agent1")
	b := breaker.Of(w.home, "claude/me")
	fault := agent.Fault{Reason: agent.UsageLimit, UntilMS: time.Now().Add(time.Hour).UnixMilli()}
	if _, _, err := b.Trip(w.ctx, "agent2", fault); err != nil {
		t.Fatal(err)
	}
	syscall.Kill(was.PID, syscall.SIGKILL)
	testworld.WaitOr(w, func() bool {
		return strings.HasPrefix(w.statuses().Find("agent1").Restart, "started again when its account serves again (account claude/me: usage limit until ")
	}, func() string { return fmt.Sprintf("%+v", w.statuses().Find("agent1")) })
	w.event("agent1 not restarted: account claude/me: usage limit until ")
	testworld.Equal(t, w.plans.Load(), 0, "planned on a tripped account")
	if closed, err := b.Answered(w.ctx, "agent2", time.Now().Add(time.Second)); err != nil || !closed {
		t.Fatal(closed, err)
	}
	w.due("agent1")
	w.back(was)
}

// An agent that something else kills again and again, each time after it had run for a
// minute, is started again at once, and is in no crash loop.
func TestKilledFromOutside(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.up(w.r, "agent1")
	st := w.statuses().Find("agent1")
	for range backoff.LoopDeaths + 1 {
		la := testworld.Got(w.home.LoadLaunch("agent1"))(t)
		la.StartedMS -= time.Minute.Milliseconds()
		testworld.Must(t, w.home.SaveLaunch(la))
		syscall.Kill(st.PID, syscall.SIGKILL)
		was := st
		if st = w.back(st); w.statuses().Find("agent1").State == agent.CrashLooping {
			t.Fatal("a crash loop")
		}
		r, err := backoff.Load(w.home, "agent1")
		if err != nil || r.Died == was.Start && (r.Tries > 1 || len(r.DeathsMS) > 0) {
			t.Errorf("%+v %v", r, err)
		}
	}
	testworld.EqualList(t, w.owned(), nil, "told the owner")
}
