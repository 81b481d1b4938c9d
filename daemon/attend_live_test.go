//go:build live

package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/prompts"
	"netsky/spawn"
)

func (w *ward) touch(name string) {
	w.Helper()
	testworld.Must(w, os.WriteFile(filepath.Join(w.r.dir, name), nil, 0o600))
}

func (w *ward) remove(name string) {
	w.Helper()
	testworld.Must(w, os.Remove(filepath.Join(w.r.dir, name)))
}

// killReceiver kills the receiver of an agent as soon as it holds the mailbox.
func (w *ward) killReceiver(id agent.ID) {
	w.Helper()
	var who home.Holder
	testworld.WaitOr(w, func() (ok bool) { who, ok = w.home.LockHolder("receiver-" + string(id)); return ok }, func() string { return "no receiver" })
	syscall.Kill(who.PID, syscall.SIGKILL)
	testworld.WaitOr(w, func() bool { return !who.Alive() }, func() string { return "the receiver survives" })
}

// shows waits for what status says of an agent.
func (w *ward) shows(id agent.ID, state agent.State, detail string) (st spawn.Status) {
	w.Helper()
	testworld.WaitOr(w, func() bool {
		st = w.statuses().Find(id)
		return st.State == state && strings.Contains(st.Detail, detail)
	}, func() string { return fmt.Sprintf("%+v, want %s (%s)", st, state, detail) })
	return st
}

func TestAttendRestarts(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.up(w.r, "agent1")
	w.answered(w.mail("agent1", "one"))
	before := w.statuses().Find("agent1")

	// Busy: it is left alone, and status says what is the matter.
	w.touch("busy")
	w.killReceiver("agent1")
	waits := w.mail("agent1", "two")
	st := w.shows("agent1", agent.Waiting, "its receiver has exited; restarting once idle (a turn runs)")
	if st.Inbox != 1 || st.Evidence != "no receiver holds its mailbox" {
		t.Errorf("%+v", st)
	}
	looks := w.r.looks.Load()
	testworld.WaitOr(w, func() bool { return w.r.looks.Load() > looks+2 }, func() string { return "not asked again" })
	if st := w.statuses().Find("agent1"); st.Start != before.Start || w.plans.Load() != 0 {
		t.Fatalf("ended while busy: %+v", st)
	}

	// Idle: it comes back with its conversation, and has its mail.
	w.remove("busy")
	e := w.answered(waits)
	testworld.Equal(t, e.Envelope.Text, "got two", "answer")
	st = w.shows("agent1", agent.Idle, "")
	if st.Start == before.Start || !st.Wanted {
		t.Errorf("%+v, was %+v", st, before)
	}
	starts, err := os.ReadFile(filepath.Join(w.r.dir, "starts"))
	if err != nil || string(starts) != fmt.Sprintf("1 %s \n1 %s conversation-7\n", before.Start, st.Start) {
		t.Errorf("starts %q, %v", starts, err)
	}
	testworld.WaitOr(w, func() bool { return strings.Contains(w.log(), `"msg":"restart"`) }, w.log)

	// And again, after a while.
	w.killReceiver("agent1")
	w.answered(w.mail("agent1", "three"))
	testworld.Equal(t, w.plans.Load(), 2, "restarts")
}

// A daemon that was not there when the receiver died knows by the report that
// there was one; and what is wanted down is not brought back.
func TestAttendAfterwards(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.up(w.r, "agent1", "agent2")
	w.stop()
	w.killReceiver("agent1")
	w.killReceiver("agent2")
	testworld.Must(t, home.Desired(w.home).Set("agent1", false, "owner"))
	before := w.statuses()
	w.begin()
	w.answered(w.mail("agent2", "hello"))
	if st := w.statuses().Find("agent1"); st.Start != before.Find("agent1").Start || w.plans.Load() != 1 {
		t.Errorf("%+v, was %+v", st, before.Find("agent1"))
	}
}

// What takes long about one agent holds up nothing about the others, nor the end of
// the daemon.
func TestAttendBeside(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.up(w.r, "agent1", "agent2")
	w.touch("hang")
	w.killReceiver("agent1")
	testworld.WaitOr(w, func() bool { return w.r.looks.Load() > 0 }, func() string { return "never asked whether it is idle\n" + w.log() })
	st, db := w.statuses().Find("agent2"), w.db()
	syscall.Kill(st.PID, syscall.SIGKILL)
	testworld.WaitOr(w, func() bool {
		s, err := db.Session(w.ctx, st.Start)
		return err == nil && s.State == agent.Dead
	}, func() string { return "the death of agent2 is not on record\n" + w.log() })
	testworld.Equal(t, w.r.looks.Load(), 1, "agent1's runtime was asked")
	w.stop()
}

func TestAttendDialog(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.touch("trust")
	w.up(w.r, "agent1")
	w.shows("agent1", agent.Waiting, "trust")
	mail := func() (list []envelope.Envelope) {
		t.Helper()
		for _, place := range []bus.Place{bus.Inbox, bus.Claimed, bus.Delivered} {
			all := testworld.Got(w.bus.List(agent.Owner, place, 0))(t)
			for _, e := range all {
				if e.Err == nil && e.Envelope.Kind == envelope.KindApproval {
					list = append(list, e.Envelope)
				}
			}
		}
		return list
	}
	testworld.WaitOr(w, func() bool { return len(mail()) > 0 }, func() string { return "the owner was not told\n" + w.log() })
	want := "agent1 is waiting at a dialog in its pane (trust): Do you trust this? &lt;channel>\nOnly you can answer it: netsky attach agent1"
	if e := mail()[0]; e.From != "agent1" || e.Text != want || e.Via != "code" {
		t.Errorf("%+v", e)
	}

	// Another daemon knows that it was told.
	w.stop()
	w.begin()

	// Answered: it starts, and takes its mail.
	w.remove("trust")
	w.answered(w.mail("agent1", "hello"))
	w.shows("agent1", agent.Idle, "")
	start := w.statuses().Find("agent1").Start

	// The mail about it needs nothing of the owner any more.
	w.read(mail()[0].ID, "answered in the pane: trust: Do you trust this?")

	// An agent without its receiver is not ended while a dialog is open.
	w.touch("trust")
	w.killReceiver("agent1")
	id := w.mail("agent1", "two")
	w.shows("agent1", agent.Waiting, "trust")
	if st := w.statuses().Find("agent1"); st.Start != start || w.plans.Load() != 0 {
		t.Errorf("restarted at a dialog: %+v", st)
	}
	testworld.WaitOr(w, func() bool { return len(mail()) == 2 }, func() string { return "the owner was not told\n" + w.log() })
	w.remove("trust")
	w.answered(id)
	w.read(mail()[1].ID, "") // how it went depends on how soon the agent is restarted
	testworld.WaitOr(w, func() bool { n, err := w.bus.Count(agent.Owner, bus.Inbox); return err == nil && n == 0 }, func() string { return "the owner's mail is not filed" })
	if list := mail(); len(list) != 2 || list[0].ID == list[1].ID {
		t.Errorf("told %v, want each of two dialogs once", list)
	}
}

// A start that does not get ready within a minute is shown with what its pane shows, and the
// owner is told once, whatever the cause is. It is not ended, and may still get ready.
func TestAttendUnready(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.touch("mute")
	testworld.Got(w.l.Up(w.ctx, spawn.UpOptions{
		Plans: []spawn.Plan{{Agent: "agent1", Runtime: w.r, Dir: w.home.Root(), Prompt: prompts.Input{Home: w.home, Runtime: "served"}}},
		By:    "owner", ReadyWithin: time.Nanosecond,
	}))(t)
	la := testworld.Got(w.home.LoadLaunch("agent1"))(t)
	la.StartedMS -= agent.StartsWithin.Milliseconds()
	testworld.Must(t, w.home.SaveLaunch(la))
	st := w.shows("agent1", agent.Starting, "its pane shows: it hears nobody")
	testworld.Equal(t, st.Start, la.Start, "%+v", st)
	testworld.WaitOr(w, func() bool {
		list, err := w.bus.Locate(w.ctx, "unready-"+la.Start)
		return err == nil && len(list) > 0 && strings.Contains(list[0].Envelope.Text, "its pane shows: it hears nobody.\n`netsky attach agent1` ")
	}, w.log)
	w.remove("mute")
	w.answered(w.mail("agent1", "hello"))
	if st := w.shows("agent1", agent.Idle, ""); st.Start != la.Start {
		t.Errorf("started again: %+v", st)
	}
	testworld.WaitOr(w, func() bool {
		_, settled, err := new(home.Shown).Names(w.home)
		return err == nil && len(settled) == 1
	}, w.log)
}

// A dialog that the program has opened by itself, and that its receiver would have closed,
// does not keep an agent without its receiver from going on.
func TestAttendDismisses(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.up(w.r, "agent1")
	start := w.statuses().Find("agent1").Start
	w.touch("menu")
	w.killReceiver("agent1")
	w.answered(w.mail("agent1", "hello"))
	if st := w.statuses().Find("agent1"); st.Start == start {
		t.Errorf("not restarted: %+v", st)
	}
	if key, err := os.ReadFile(filepath.Join(w.r.dir, "key")); err != nil || string(key) != "\x1b" {
		t.Errorf("pressed %q, %v", key, err)
	}
}

// A dialog that comes up while the receiver is there is told of after a while,
// once; a question that was put before the owner is not told twice.
func TestAttendLaterDialog(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.up(w.r, "agent1", "agent2")
	told := func(id agent.ID) int {
		t.Helper()
		ids := make(map[string]bool) // what is sent again has the same one
		for _, place := range []bus.Place{bus.Inbox, bus.Claimed, bus.Delivered} {
			all := testworld.Got(w.bus.List(agent.Owner, place, 0))(t)
			for _, e := range all {
				if e.Err == nil && e.Envelope.From == id && strings.Contains(e.Envelope.Text, id.N()+" is waiting at a dialog in its pane (limits): go on?") {
					ids[e.Envelope.ID] = true
				}
			}
		}
		return len(ids)
	}
	since := time.Now().Add(-time.Minute).UnixMilli()
	for _, id := range []agent.ID{"agent2", "agent1"} {
		start := w.statuses().Find(id).Start
		if id == "agent2" {
			testworld.Got(home.Approvals(w.home).Ask(agent.Approval{Agent: id, Start: start, Tool: "Bash", Text: "go on?"}))(t)
		}
		testworld.Must(t, w.home.SaveReport(id, agent.Report{Start: start, State: agent.Waiting, SinceMS: since, Evidence: "its word", Detail: "limits: go on?", Dialog: "limits"}))
	}
	testworld.WaitOr(w, func() bool { return told("agent1") > 0 }, func() string { return "the owner was not told\n" + w.log() })
	w.stop()
	w.begin()
	if n, m := told("agent1"), told("agent2"); n != 1 || m != 0 {
		t.Errorf("told of agent1 %d times, of agent2 %d, want 1 and 0", n, m)
	}

	// The daemon that finds it gone is another one than has told it.
	start := w.statuses().Find("agent1").Start
	w.stop()
	testworld.Must(t, w.home.SaveReport("agent1", agent.Report{Start: start, State: agent.Idle, SinceMS: time.Now().UnixMilli()}))
	w.begin()
	w.read(fmt.Sprintf("dialog-%s-%d", start, since), "answered in the pane: limits: go on?")
}
