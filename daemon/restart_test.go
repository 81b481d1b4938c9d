package daemon_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"netsky/agent"
	"netsky/bus"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/spawn"
	"netsky/store"
	"netsky/watch/backoff"
)

// events returns what the watchdog has recorded, the oldest first.
func (w *world) events() (texts []string) {
	w.Helper()
	logs := testworld.Got(w.db().Logs(w.ctx, store.LogFilter{Part: "watchdog", Forward: true}))(w)
	for _, l := range logs.Items {
		texts = append(texts, strings.TrimSpace(string(l.Actor)+" "+l.Text))
	}
	return texts
}

// event waits until an event that begins so has been recorded.
func (w *world) event(prefix string) {
	w.Helper()
	testworld.WaitOr(w, func() bool {
		return slices.ContainsFunc(w.events(), func(s string) bool { return strings.HasPrefix(s, prefix) })
	}, func() string { return fmt.Sprintf("no event %q: %q\n%s", prefix, w.events(), w.log()) })
}

// owned returns the texts of the mail to the owner, each id once.
func (w *world) owned() (texts []string) {
	w.Helper()
	seen := make(map[string]bool)
	for _, place := range []bus.Place{bus.Inbox, bus.Claimed, bus.Delivered} {
		all := testworld.Got(w.bus.List(agent.Owner, place, 0))(w)
		for _, e := range all {
			if e.Err == nil && !seen[e.Envelope.ID] {
				seen[e.Envelope.ID] = true
				texts = append(texts, e.Envelope.Text)
			}
		}
	}
	return texts
}

// back waits until an agent has come to life in another start than this one.
func (w *world) back(was spawn.Status) (st spawn.Status) {
	w.Helper()
	testworld.WaitOr(w, func() bool {
		st = w.statuses().Find(was.Agent)
		return st.State == agent.Idle && st.Start != was.Start
	}, func() string { return fmt.Sprintf("not back: %+v\n%s", st, w.log()) })
	return st
}

// An agent that has died is started again on its conversation, as status announces, and
// only what its new start reports proves that it lives.
func TestRestart(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.up(w.r, "agent1", "agent2")
	was := w.statuses().Find("agent1")
	syscall.Kill(was.PID, syscall.SIGKILL)
	testworld.WaitOr(w, func() bool {
		st := w.statuses().Find("agent1")
		return st.Start != was.Start || st.Died() && strings.HasPrefix(st.Restart, "restart") && strings.HasSuffix(st.Restart, "(attempt 1)")
	}, func() string { return fmt.Sprintf("not announced: %+v", w.statuses().Find("agent1")) })
	st := w.back(was)
	w.answered(w.mail("agent1", "hello"))
	w.event("agent1 restarted: ready")
	if got := w.events(); got[0] != "agent1 died: killed by SIGKILL" || got[1] != "agent1 restarting (attempt 1): killed by SIGKILL" ||
		!strings.HasSuffix(got[2], "after attempt 1 began") || len(got) != 3 {
		t.Errorf("%q", got)
	}
	starts, err := os.ReadFile(filepath.Join(w.r.dir, "starts"))
	if err != nil || !strings.Contains(string(starts), "1 "+st.Start+" conversation-7\n") {
		t.Errorf("starts %q, %v", starts, err)
	}
	if d, err := home.Desired(w.home).Load("agent1"); err != nil || d.By != "owner" {
		t.Errorf("the owner's word was replaced: %+v %v", d, err)
	}

	// The next wait is longer, and another daemon keeps to it.
	w.stop()
	syscall.Kill(st.PID, syscall.SIGKILL)
	w.begin()
	testworld.WaitOr(w, func() bool { return strings.HasSuffix(w.statuses().Find("agent1").Restart, "(attempt 2)") },
		func() string { return fmt.Sprintf("%+v", w.statuses().Find("agent1")) })
	r, err := backoff.Load(w.home, "agent1")
	if err != nil || r.Tries != 1 {
		t.Errorf("%+v %v", r, err)
	}
	st = w.back(st)

	// Ten healthy minutes later nothing of it counts.
	w.event("agent1 restarted: ready")
	testworld.WaitOr(w, func() bool {
		r, err := backoff.Load(w.home, "agent1")
		if err != nil || r.Proved != st.Start {
			return false
		}
		r.ProvedMS -= backoff.Healthy.Milliseconds()
		return backoff.Save(w.home, "agent1", r) == nil
	}, func() string { return "not proved" })
	w.event("agent1 healthy for 10 minutes")
	if r, err := backoff.Load(w.home, "agent1"); err != nil || !r.Zero() {
		t.Errorf("%+v %v", r, err)
	}
	if got := w.owned(); len(got) != 1 { // the answer
		t.Errorf("told the owner %q", got)
	}
}

// planned is what the daemon's Plan does about an agent in a test.
func (w *ward) planned(ctx context.Context, id agent.ID) error {
	switch id {
	case w.hangs:
		<-ctx.Done()
		return ctx.Err()
	case w.fails:
		return fmt.Errorf("no program")
	}
	return nil
}
