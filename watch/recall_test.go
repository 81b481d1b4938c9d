package watch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/testworld"
	"netsky/spawn"
	"netsky/store"
	"netsky/tmux"
	"netsky/watch"
)

func newLauncher(t *testing.T) *spawn.Launcher {
	t.Helper()
	h := testworld.FastHome(t)
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(h.Root())}
	return spawn.New(spawn.Site{
		Home: h, Bus: testworld.Bus(t, h, "agent0", "agent1", "agent2", agent.Owner), Journal: store.NewJournal(h), Environ: env,
		Tmux: &tmux.Server{Socket: filepath.Join(filepath.Dir(h.Root()), "s"), Conf: h.Path(home.TmuxConfFile), Env: env, Tags: []string{spawn.TagHome, spawn.TagStart}},
	})
}

func send(t *testing.T, l *spawn.Launcher, e envelope.Envelope) {
	t.Helper()
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	testworld.Got(l.Bus.Send(t.Context(), e))(t)
}

// The manager is told who is up, what is unanswered on both sides, and the open questions
// and tasks; a clone only of its own message and tasks.
func TestFacts(t *testing.T) {
	t.Parallel()
	l := newLauncher(t)
	testworld.Equal(t, watch.BriefingOf(l, "agent0").Facts(t.Context(), true, nil), "", "a new home")
	send(t, l, envelope.Envelope{ID: "brief-1", From: "agent0", To: "agent1", Kind: envelope.KindBrief, Text: "fix the\nroof"})
	send(t, l, envelope.Envelope{ID: "brief-2", From: "agent0", To: "agent2", Kind: envelope.KindBrief, Text: "paint it"})
	send(t, l, envelope.Envelope{ID: "note-1", From: "agent1", To: "agent2", Text: "not the manager's"})
	send(t, l, envelope.Envelope{ID: "ask-1", From: agent.Owner, To: "agent0", Text: "is it done?"})
	send(t, l, envelope.Envelope{ID: "ask-2", From: agent.Owner, To: "agent0", Text: "and now?"})
	for to, id := range map[agent.ID]string{"agent1": "brief-1", "agent0": "ask-1"} {
		list, err := l.Bus.Received(t.Context(), to, id)
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		testworld.Must(t, courier.Owe(l.Home, to, list[0].Envelope))
	}
	testworld.Got(home.Approvals(l.Home).Ask(agent.Approval{Agent: "agent2", Start: "s", Tool: "shell", Text: "rm -rf build", Asker: proc.Self()}))(t)
	testworld.Must(t, home.Desired(l.Home).Set("agent1", true, "owner"))
	testworld.Must(t, l.Journal.Record(t.Context(), store.UpsertTask{ID: "t-1", Title: "the roof", State: store.TaskOpen, Assignee: "agent1", AskedBy: "agent0"}))
	l.Journal.Close()
	got := watch.BriefingOf(l, "agent0").Facts(t.Context(), false, nil)
	for _, want := range []string{
		"compacted or cleared", "from owner, ask-1, ", `in hand: "is it done?"`, "to agent1, brief-1, ", `in hand: "fix the roof"`,
		"to agent2, brief-2, ", `not read yet: "paint it"`, "agent2 asks the owner (", "rm -rf build", "agent1 dead", "t-1, open, agent1: the roof",
	} {
		testworld.Contains(t, got, want)
	}
	if strings.Contains(got, "not the manager's") || len(got) > watch.MostBriefing {
		t.Errorf("%d bytes:\n%s", len(got), got)
	}
	testworld.Lacks(t, watch.BriefingOf(l, "agent0").Facts(t.Context(), false, []string{"ask-1"}), "ask-1", "told twice")
	got = watch.BriefingOf(l, "agent1").Facts(t.Context(), false, nil)
	if !strings.Contains(got, "from agent0, brief-1") || !strings.Contains(got, "the roof") || strings.Contains(got, "agent2") || strings.Contains(got, "rm -rf") {
		t.Errorf("a clone is told\n%s", got)
	}
	testworld.Equal(t, watch.BriefingOf(l, "agent2").Facts(t.Context(), false, nil), "", "a clone without work is told")
}

// An agent with an objective is told it again in a new conversation and after its
// conversation has forgotten it, but not beside the message that gives it.
func TestObjective(t *testing.T) {
	t.Parallel()
	l := newLauncher(t)
	const aim = "keep the roof\ndry & whole"
	send(t, l, envelope.Envelope{ID: "aim-1", From: agent.Owner, To: "agent0", Text: aim})
	testworld.Must(t, l.Journal.Record(t.Context(), store.UpsertActor{ID: "agent0", Role: agent.Root.Role(), Objective: aim, Desired: store.DesiredUp}))
	m := watch.BriefingOf(l, "agent0")
	testworld.Lacks(t, m.Facts(t.Context(), true, nil), "the roof", "while it waits")
	r := testworld.Got(l.Bus.Receive(t.Context(), "agent0", bus.ReceiveOptions{Start: "s", Report: func(string, error) {}}))(t)
	d := testworld.Got(r.Next(t.Context()))(t)
	testworld.Lacks(t, m.Facts(t.Context(), true, []string{"aim-1"}), "the roof", "beside the message")
	testworld.Must(t, d.Confirm())
	r.Close()
	for _, fresh := range []bool{true, false} {
		if got := m.Facts(t.Context(), fresh, nil); strings.Count(got, "your objective:\n- keep the roof dry & whole") != 1 {
			t.Errorf("fresh %v: told\n%s", fresh, got)
		}
	}
	testworld.Must(t, watch.Died(l.Home, "agent0", "s", "killed by SIGKILL"))
	testworld.Lacks(t, m.Facts(t.Context(), false, nil), "the roof", "its conversation has it still")
	testworld.Equal(t, watch.BriefingOf(l, "agent1").Facts(t.Context(), true, nil), "", "another is told")
	if err := l.Journal.Record(t.Context(), store.UpsertActor{ID: "agent1", Role: agent.ID("agent1").Role(), Objective: strings.Repeat("roof ", 1000), Desired: store.DesiredUp}); err != nil {
		t.Fatal(err)
	}
	l.Journal.Close()
	if got := watch.BriefingOf(l, "agent1").Facts(t.Context(), false, nil); !strings.Contains(got, "`netsky show agent1` prints all of it") || len(got) > watch.MostBriefing {
		t.Errorf("a long one:\n%s", got)
	}
}

// However much there is, the text has at most 4 KB, and what is left out is counted.
func TestBound(t *testing.T) {
	t.Parallel()
	l := newLauncher(t)
	for i := range 60 {
		for _, to := range []agent.ID{"agent1", "agent2"} {
			send(t, l, envelope.Envelope{ID: fmt.Sprintf("b-%s-%d", to, i), From: "agentinfinity", To: to, Kind: envelope.KindBrief, Text: strings.Repeat("läng ", 100), Time: time.Now().Add(time.Duration(i) * time.Hour)})
		}
	}
	got := watch.BriefingOf(l, "agentinfinity").Facts(t.Context(), false, nil)
	if len(got) > watch.MostBriefing || !strings.Contains(got, " more: your messages") {
		t.Errorf("%d bytes:\n%s", len(got), got)
	}
}

// An agent whose program died is told how, with its last lines, and only then.
func TestDied(t *testing.T) {
	t.Parallel()
	l := newLauncher(t)
	m := watch.BriefingOf(l, "agent1")
	testworld.Equal(t, m.Due(), false, "due before anything has happened")
	la := agent.Launch{Agent: "agent1", Start: "s-1", Runtime: "demo", StartedMS: 1}
	for _, op := range append(spawn.Started(la, "", "agent1", 7),
		store.EndSession{Start: "s-1", Actor: "agent1", LastLines: "begin\n\n" + strings.Repeat("x\n", 20) + "make: *** [all] </channel> Error 2\n"}) {
		testworld.Must(t, l.Journal.Record(t.Context(), op))
	}
	l.Journal.Close()
	testworld.Must(t, watch.Died(l.Home, "agent1", "s-1", "killed by SIGKILL"))
	got := m.Facts(t.Context(), false, nil)
	if !m.Due() || !strings.Contains(got, "Your program died (killed by SIGKILL) and was started again") ||
		!strings.Contains(got, `- "make: *** [all] </channel> Error 2"`) || strings.Contains(got, "begin") || strings.Contains(got, "compacted") {
		t.Errorf("%s", got)
	}
	m.Forgot()
	if got := m.Facts(t.Context(), false, nil); !strings.Contains(got, "compacted or cleared") || !strings.Contains(got, "SIGKILL") {
		t.Errorf("%s", got)
	}
	m.Told()
	if got := m.Facts(t.Context(), false, nil); m.Due() || got != "" {
		t.Errorf("told again: %s", got)
	}
	testworld.Must(t, watch.Died(l.Home, "agent1", "unknown", "exited 1"))
	if got := m.Facts(t.Context(), false, nil); !strings.Contains(got, "exited 1") || !strings.Contains(got, "not on record") {
		t.Errorf("%s", got)
	}
}

// A new conversation in place of one that is gone is told so, and of that one's last messages.
func TestLost(t *testing.T) {
	t.Parallel()
	l := newLauncher(t)
	la := agent.Launch{Agent: "agent1", Start: "s-1", Runtime: "claude", Lost: agent.Lost{Conversation: "c-1", Why: "nobody has its file"}}
	testworld.Must(t, l.Home.SaveLaunch(la))
	for i := range 20 {
		m := store.UpsertMessage{ID: fmt.Sprint("m-", i), From: agent.Owner, To: "agent1", Text: fmt.Sprintf("step %d.", i), Time: store.Time(1000 * (i + 1))}
		if i%2 == 1 {
			m.From, m.To, m.Kind = "agent1", agent.Owner, "reply"
		}
		testworld.Must(t, l.Journal.Record(t.Context(), m))
	}
	testworld.Must(t, l.Journal.Record(t.Context(), store.UpsertMessage{ID: "end", From: agent.Owner, To: "agent1", Kind: "shutdown", Text: "step none.", Time: 90_000}))
	l.Journal.Close()
	got := watch.BriefingOf(l, "agent1").Facts(t.Context(), true, nil)
	for _, want := range []string{"you have been at work before", "is gone (nobody has its file)", `from owner, m-18, `, `message: "step 18."`, `to owner, m-19, `, `reply: "step 19."`} {
		testworld.Contains(t, got, want)
	}
	if strings.Contains(got, "step 2.") || strings.Contains(got, "step none.") || strings.Index(got, "step 18.") > strings.Index(got, "step 19.") {
		t.Errorf("not the last, in order:\n%s", got)
	}
	testworld.Lacks(t, watch.BriefingOf(l, "agent1").Facts(t.Context(), false, nil), "is gone", "a conversation that goes on is told")
}
