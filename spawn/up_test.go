package spawn_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/testworld"
	"netsky/prompts"
	"netsky/spawn"
	"netsky/store"
)

func TestUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var told []string
	o := spawn.UpOptions{
		Plans: w.plans(demo{}, "agent0", "agent1", "agentinfinity"), By: "owner", Ticker: true,
		Report: func(p spawn.Progress) { told = append(told, string(p.Agent)+" "+string(p.Step)) },
	}
	ends := testworld.Got(w.l.Up(w.ctx, o))(t)
	for i, p := range ends {
		if p.Agent != o.Plans[i].Agent || p.Step != spawn.StepReady || p.State != agent.Idle {
			t.Errorf("end %d: %+v, want %s ready, idle", i, p, o.Plans[i].Agent)
		}
	}
	slices.Sort(told)
	testworld.Equal(t, strings.Join(told, ", "), "agent0 ready, agent0 spawned, agent1 ready, agent1 spawned, agentinfinity ready, agentinfinity spawned", "told")
	testworld.Equal(t, w.sessions(), "agent0 agent1 agentinfinity netsky-ticker", "sessions")
	before := w.statuses()
	for id, st := range before {
		if st.State != agent.Idle || st.Start == "" || st.PID == 0 || !st.Wanted || st.By != "owner" {
			t.Errorf("%s: %+v", id, st)
		}
	}
	panes := w.tmux("list-panes", "-a", "-F", "#{session_name} #{pane_id} #{pane_pid}")

	// Twice changes nothing.
	told = nil
	ends = testworld.Got(w.l.Up(w.ctx, o))(t)
	for _, p := range ends {
		if p.Step != spawn.StepAlready || p.State != agent.Idle {
			t.Errorf("second time: %+v", p)
		}
	}
	for id, st := range w.statuses() {
		if st.Start != before[id].Start || st.PID != before[id].PID {
			t.Errorf("%s: start %s pid %d, were %s %d", id, st.Start, st.PID, before[id].Start, before[id].PID)
		}
	}
	testworld.Equal(t, w.tmux("list-panes", "-a", "-F", "#{session_name} #{pane_id} #{pane_pid}"), panes, "panes")
}

// A dead agent is replaced, however it died, and what was left of it is ended.
func TestUpReplaces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		kill func(w *world, st spawn.Status)
	}{
		{"program exits", func(w *world, st spawn.Status) { w.mail("agent1", "/crash 3") }},
		{"program killed", func(w *world, st spawn.Status) { syscall.Kill(st.PID, syscall.SIGKILL) }},
		{"keeper killed", func(w *world, st spawn.Status) {
			syscall.Kill(w.paneProcess("agent1").PID, syscall.SIGKILL)
		}},
		{"session closed", func(w *world, st spawn.Status) { w.tmux("kill-session", "-t", "=agent1") }},
		{"server killed", func(w *world, st spawn.Status) { w.tmux("kill-server") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.upReady(demo{}, "agent1")
			before := w.status("agent1")
			c.kill(w, before)
			dead := w.becomes("agent1", agent.Dead)
			if dead.Evidence == "" {
				t.Error("dead without evidence")
			}
			w.upReady(demo{}, "agent1")
			after := w.status("agent1")
			if after.State != agent.Idle || after.Start == before.Start || after.PID == before.PID {
				t.Errorf("after: %s %s pid %d; before: %s pid %d", after.State, after.Start, after.PID, before.Start, before.PID)
			}
			testworld.Equal(t, w.sessions(), "agent1", "sessions")
			w.answers("agent1")
		})
	}
}

// paneProcess is the keeper in an agent's pane.
func (w *world) paneProcess(name string) proc.Process {
	w.Helper()
	panes := testworld.Got(w.l.Tmux.Panes(w.ctx))(w)
	for _, p := range panes {
		if p.Session == name {
			return processOf(p.PID)
		}
	}
	w.Fatalf("%s: no session", name)
	return proc.Process{}
}

// answers wants an answer of a demo agent's.
func (w *world) answers(name string) {
	w.Helper()
	id := w.mail(name, "hello")
	testworld.WaitOr(w, func() bool {
		_, ok, err := w.bus.FindAnswer(w.ctx, "", agent.Owner, id, time.Time{})
		return err == nil && ok
	}, func() string { return name + ": no answer" })
}

// What outlived a dead program might hold its mailbox: the next start ends it.
func TestUpEndsLeftovers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(sh(ready+`setsid sh -c 'echo $$ >left; exec sleep 1000' & exec sleep 1000`), "agent1")
	left := w.process(filepath.Join(w.work(), "left"))
	syscall.Kill(w.status("agent1").PID, syscall.SIGKILL)
	w.becomes("agent1", agent.Dead)
	w.alive(left, "leftover of the dead agent")
	w.upReady(demo{}, "agent1")
	w.gone(left, "leftover after the next up")
}

func TestUpFails(t *testing.T) {
	t.Parallel()
	t.Run("at once", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		ends := testworld.Got(w.l.Up(w.ctx, spawn.UpOptions{ReadyWithin: 20 * time.Second, Plans: append(
			w.plans(sh("echo cannot find my licence; echo bye; exit 7"), "agent1"), w.plans(demo{}, "agent2")...)}))(t)
		p := ends[0]
		if p.Step != spawn.StepFailed || p.Err == nil || p.Err.Error() != "exited 7" {
			t.Errorf("%+v, want failed, exited 7", p)
		}
		testworld.Equal(t, strings.Join(p.Lines, "|"), "cannot find my licence|bye||[agent1 exited: 7]", "lines")
		testworld.Equal(t, ends[1].Step, spawn.StepReady, "the other: %+v", ends[1])
	})
	t.Run("never reports", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.readyWithin = 300 * time.Millisecond
		p := w.up(sh("sleep 1000"), "agent1")[0]
		if p.Step != spawn.StepSlow || p.State != agent.Starting || !strings.Contains(p.Note, "not ready after 300ms: process ") {
			t.Errorf("%+v, want starting", p)
		}
		testworld.Equal(t, w.status("agent1").State, agent.Starting, "status")
	})
	t.Run("keeper missing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.readyWithin = 20 * time.Second
		w.l.Binary = filepath.Join(w.dir, "nowhere")
		p := w.up(sh(ready+"sleep 1000"), "agent1")[0]
		if p.Step != spawn.StepFailed || p.Err == nil || !strings.Contains(p.Err.Error(), "its pane ended") {
			t.Errorf("%+v, want failed: its pane ended", p)
		}
	})
	t.Run("interpreter missing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		script := filepath.Join(w.dir, "x")
		testworld.Program(t, script, "#!/nowhere/at/all\n")
		p := w.up(program{script}, "agent1")[0]
		if p.Step != spawn.StepFailed || p.Err.Error() != "exited 126" || !strings.Contains(strings.Join(p.Lines, "\n"), "its interpreter") {
			t.Errorf("%+v", p)
		}
	})
}

// refuses is a runtime of which a program is missing.
type refuses struct{ program }

func (refuses) Check(context.Context, agent.Launch) error {
	return errors.New("gemini: no such program in PATH")
}

// What stands in the way is all found before anything is made.
func TestUpRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	plans := w.plans(demo{}, "agent0", "agent1", "agent2", "agent3", "agent4")
	plans[1].Runtime, plans[4].Runtime = refuses{}, refuses{}
	plans[2].Dir = filepath.Join(w.dir, "nowhere")
	plans[3].Prompt.Addenda = []prompts.Layer{{Name: "0.md", Text: "You are {{ .whatever }}."}}
	for name, call := range map[string]func() error{
		"up":      func() error { _, err := w.l.Up(w.ctx, spawn.UpOptions{Plans: plans, Ticker: true}); return err },
		"prepare": func() error { _, err := w.l.Prepare(w.ctx, plans); return err },
	} {
		err := call()
		if err == nil {
			t.Fatalf("%s: no error", name)
		}
		for _, want := range []string{
			"agent1: gemini: no such program in PATH", "agent2: directory " + plans[2].Dir + ": no such file or directory", "agent3: ",
		} {
			testworld.Equal(t, strings.Count(err.Error(), want), 1, "%s: %q in %q", name, want, err)
		}
		if strings.Contains(err.Error(), "agent4") {
			t.Errorf("%s: says the same thing twice: %v", name, err)
		}
	}
	testworld.Equal(t, w.sessions(), "", "sessions")
	for _, rel := range []string{home.DesiredDir, home.LaunchDir, home.PromptDir, home.Channels} {
		if list, err := os.ReadDir(w.home.Path(rel)); err != nil || len(list) != 0 {
			t.Errorf("%s: %v %v, want nothing", rel, list, err)
		}
	}
	testworld.Fails(t, testworld.Err(os.Stat(w.socket)), "", "a tmux server was started")
}

// unprepared is a runtime that can't write its files.
type unprepared struct{ program }

func (unprepared) Prepare(context.Context, *agent.Launch) error {
	return errors.New("settings: disk full")
}

// Files come first, the session last; and one agent's failure stops no other.
func TestUpPreparesFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	plans := append(w.plans(unprepared{}, "agent1"), w.plans(demo{}, "agent2")...)
	ends := testworld.Got(w.l.Up(w.ctx, spawn.UpOptions{Plans: plans}))(t)
	if p := ends[0]; p.Agent != "agent1" || p.Step != spawn.StepFailed || p.Err == nil || p.Err.Error() != "settings: disk full" {
		t.Errorf("%+v", p)
	}
	testworld.Equal(t, ends[1].Step, spawn.StepReady, "the other: %+v", ends[1])
	testworld.Equal(t, w.sessions(), "agent2", "sessions")

	// All that an agent needs is there when its program starts.
	w.upReady(sh(`ls "$NETSKY_PROMPT_FILE" "$NETSKY_HOME/state/launch/agent3.json" "$NETSKY_HOME/channels/agent/agent3/inbox" >seen 2>&1 &&`+ready+"sleep 1000"), "agent3")
}

// Two ups at once: the second waits, and there is one set of agents.
func TestUpTwiceAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := launcherAt(w.home, w.socket, w.l.Environ)
	defer other.Journal.Close()
	var wg sync.WaitGroup
	ends := make([][]spawn.Progress, 2)
	for i, l := range []*spawn.Launcher{w.l, other} {
		wg.Go(func() {
			var err error
			if ends[i], err = l.Up(w.ctx, spawn.UpOptions{Plans: w.plans(demo{}, "agent0", "agent1", "agent2")}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	starts := 0
	for _, list := range ends {
		for _, p := range list {
			switch p.Step {
			case spawn.StepReady:
				starts++
			case spawn.StepAlready:
			default:
				t.Errorf("%+v", p)
			}
		}
	}
	if got := w.sessions(); starts != 3 || got != "agent0 agent1 agent2" {
		t.Errorf("%d started, sessions %s", starts, got)
	}
}

// An up that waits for another says so, and ends with its context.
func TestUpWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lock, err := w.home.Lock("up")
	testworld.Must(t, err)
	defer lock.Unlock()
	ctx, cancel := context.WithCancel(w.ctx)
	var told []spawn.Step
	_, err = w.l.Up(ctx, spawn.UpOptions{Plans: w.plans(demo{}, "agent1"), Report: func(p spawn.Progress) {
		told = append(told, p.Step)
		cancel()
	}})
	if !errors.Is(err, home.ErrLocked) || !slices.Equal(told, []spawn.Step{spawn.StepBlocked}) {
		t.Errorf("%v, told %v", err, told)
	}
}

// forgetful is a program that can't continue its conversation.
type forgetful struct{ program }

func (f forgetful) Prepare(ctx context.Context, l *agent.Launch) error {
	l.Lost = agent.Lost{Conversation: "c-1", Why: "its file is gone"}
	return f.program.Prepare(ctx, l)
}

// That an agent has lost its conversation is on record and in the owner's mail, once.
func TestUpLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	testworld.Must(t, w.bus.Make(agent.Owner))
	for range 2 {
		w.upReady(forgetful{stays()}, "agent1")
		w.down(spawn.DownOptions{Agents: ids("agent1"), Force: true})
	}
	w.l.Journal.Close()
	const want = "its conversation c-1 can't be continued: its file is gone; it begins a new one"
	list, _, err := bus.Letters(w.bus, false)
	if err != nil || len(list) != 1 || !strings.HasPrefix(list[0].Envelope.Text, "agent1: "+want) || list[0].Envelope.From != "agent1" {
		t.Errorf("mail: %+v, %v", list, err)
	}
	db := testworld.Got(store.OpenRead(t.Context(), w.home))(t)
	defer db.Close()
	logs, err := db.Logs(t.Context(), store.LogFilter{Actor: "agent1"})
	n := 0
	for _, l := range logs.Items {
		if strings.HasPrefix(l.Text, want) && l.Level == store.LevelWarn {
			n++
		}
	}
	if err != nil || n != 1 {
		t.Errorf("on record %d times, %v: %+v", n, err, logs.Items)
	}
}
