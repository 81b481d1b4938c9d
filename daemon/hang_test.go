//go:build live

package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/watch/hang"
)

// An agent with work that shows no sign of life is hung: status shows it and the owner is
// paged, again and again, but not while it is quiet, and not once it is alive again. One
// that has nothing to do, or waits for a person, does not hang; one whose state nobody can tell does.
func TestHang(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.stop()
	w.hang, w.repage = 2*time.Second, time.Hour
	w.begin()
	w.up(w.r, "agent1", "agent2", "agent3", "agent4", "agent5")
	report := w.report
	pages := func(id agent.ID) (n int) {
		t.Helper()
		for _, text := range w.owned() {
			if strings.HasPrefix(text, string(id)+" hangs: no sign of life for ") {
				n++
			}
		}
		return n
	}
	testworld.Got(attention.Silence(w.ctx, w.home, time.Hour, "owner", time.Now()))(t)
	testworld.Must(t, w.home.WriteFile(home.ReportDir+"/agent5.json", []byte("{"), false))
	report("agent2", agent.Waiting, "May I?")
	report("agent4", agent.Blocked, "usage limit until 14:00")
	for _, id := range []agent.ID{"agent2", "agent4"} { // with work, too
		testworld.Must(t, w.home.WriteFile(home.Mailbox(id)+"/claimed/work.json", []byte("{}"), false))
	}
	report("agent1", agent.Busy, "Bash: make")
	st := w.shows("agent1", agent.Hung, "busy: Bash: make")
	if !st.Alive() || !strings.HasPrefix(st.Detail, "no sign of life for ") {
		t.Errorf("%+v", st)
	}
	w.event("agent1 hangs: no sign of life for ")
	w.event("agent5 hangs: no sign of life for ")
	testworld.Equal(t, pages("agent1"), 0, "paged")
	testworld.Got(attention.EndQuiet(w.ctx, w.home, time.Now()))(t)
	testworld.WaitOr(w, func() bool { return pages("agent1") == 1 }, func() string { return fmt.Sprintf("not paged: %q\n%s", w.owned(), w.log()) })

	// Another daemon knows of it, and pages again when it is time.
	w.stop()
	told := testworld.Got(home.Load[map[string]map[string]map[string]any](w.home, "state/attention.json"))(t)
	r := hang.Load(w.home, "agent1", st.Start)
	told["standing"][fmt.Sprintf("hang-%s-%d", r.Start, r.SinceMS)]["told_ms"] = time.Now().Add(-time.Hour).UnixMilli()
	testworld.Must(t, w.home.Save("state/attention.json", told, false))
	w.begin()
	testworld.WaitOr(w, func() bool { return pages("agent1") == 2 }, func() string { return fmt.Sprintf("not paged again: %q\n%s", w.owned(), w.log()) })
	if got := w.events(); slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "shows signs of life again") }) {
		t.Errorf("a new daemon takes its first look at a pane for a sign of life: %q", got)
	}

	report("agent1", agent.Idle, "")
	w.event("agent1 shows signs of life again, after ")
	w.shows("agent1", agent.Idle, "")
	for _, id := range []agent.ID{"agent2", "agent3", "agent4"} {
		if st := w.statuses().Find(id); st.State == agent.Hung || pages(id) != 0 || id != "agent3" && st.Claimed != 1 {
			t.Errorf("%+v", st)
		}
	}
	testworld.WaitOr(w, func() bool {
		shown, err := home.ShownMail(w.home).Names()
		names, err2 := w.bus.Mail(agent.Owner, false)
		list, err3 := w.bus.FindAll(agent.Owner, names)
		for _, e := range list {
			if err != nil || err2 != nil || err3 != nil || !shown[e.Name] && e.Envelope.From == "agent1" {
				return false
			}
		}
		return true
	}, func() string { return "the pages still count as unread" })
	if _, settled, err := new(home.Shown).Names(w.home); err != nil || len(settled) != 2 {
		t.Errorf("of two pages that nobody has read, %d are known as settled, %v", len(settled), err)
	}
}

// A daemon that is restarted does not begin to count anew.
func TestHangOverRestarts(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.stop()
	w.hang, w.repage = 20*time.Second, time.Hour
	w.begin()
	w.up(w.r, "agent1")
	w.report("agent1", agent.Busy, "Bash: make")
	start := w.statuses().Find("agent1").Start
	var kept hang.Silence
	testworld.Wait(w, "its silence is stored", func() bool {
		kept = hang.LoadSilence(w.home, "agent1", start)
		return kept.Silent > 0
	})
	if st := w.statuses().Find("agent1"); st.State == agent.Hung {
		t.Errorf("%+v", st)
	}
	w.stop()
	kept.Silent = (3 * time.Hour).Milliseconds() // as if it had been silent for long
	testworld.Must(t, hang.SaveSilence(w.home, "agent1", kept))
	w.begin()
	if st := w.shows("agent1", agent.Hung, "busy: Bash: make"); !strings.Contains(st.Detail, "3h") {
		t.Errorf("%+v", st)
	}
}

// An agent whose tool computes without a word does not hang.
func TestHangWhileComputing(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // it is not known there
	}
	t.Parallel()
	w := newWard(t)
	w.stop()
	w.hang, w.repage = 12*time.Second, time.Hour // far more than what lies between two looks, of which the first knows of no computing
	w.begin()
	testworld.Must(t, os.WriteFile(filepath.Join(w.r.dir, "computes-agent2"), nil, 0o600))
	w.up(w.r, "agent1", "agent2")
	w.report("agent2", agent.Busy, "Bash: make")
	w.report("agent1", agent.Busy, "Bash: make")
	w.shows("agent1", agent.Hung, "busy: Bash: make")
	if st := w.statuses().Find("agent2"); st.State != agent.Busy {
		t.Errorf("%+v", st)
	}
}

// agentinfinity is woken about what the owner is told, once about each event and not beyond
// its budget.
func TestWake(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.stop()
	w.hang, w.repage, w.wakes = 2*time.Second, time.Second, 1
	w.begin()
	w.up(w.r, "agent1", "agent2", "agentinfinity")
	told := func() (n int) {
		t.Helper()
		for _, place := range []bus.Place{bus.Inbox, bus.Claimed, bus.Delivered} {
			all := testworld.Got(w.bus.List(agent.Infinity, place, 0))(t)
			for _, e := range all {
				if e.Err == nil && strings.HasPrefix(e.Envelope.Text, "The watchdog reports") {
					n++
				}
			}
		}
		return n
	}
	w.report("agent1", agent.Busy, "Bash: make")
	w.event("agent1 agentinfinity is woken about it (1 of 1 in 24 hours)")
	w.report("agent2", agent.Busy, "Bash: make")
	w.event("agent2 agentinfinity is not woken about it")
	testworld.WaitOr(w, func() bool { return len(w.owned()) >= 4 }, func() string { return fmt.Sprintf("%q", w.owned()) }) // the owner goes on being paged
	testworld.Equal(t, told(), 1, "woken")
}

// report has an agent say something about itself.
func (w *ward) report(id agent.ID, state agent.State, detail string) {
	w.Helper()
	start := w.statuses().Find(id).Start
	testworld.Must(w, w.home.SaveReport(id, agent.Report{Start: start, State: state, SinceMS: time.Now().UnixMilli(), Detail: detail}))
}
