package spawn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/spawn"
)

// How an agent ended, and what says so.
func TestInspectDead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script     string
		kill             func(w *world, st spawn.Status)
		detail, evidence string
	}{
		{"status", "exit 3", nil, "exited 3", "recorded by its keeper"},
		{"status 0", "exit 0", nil, "exited 0", "recorded by its keeper"},
		{"signal", "kill -SEGV $$", nil, "killed by SIGSEGV", "recorded by its keeper"},
		{"killed", "read x", func(_ *world, st spawn.Status) { syscall.Kill(st.PID, syscall.SIGKILL) }, "killed by SIGKILL", "recorded by its keeper"},
		{"session closed", "exec sleep 1000", func(w *world, _ spawn.Status) { w.tmux("kill-session", "-t", "=agent1") },
			"killed by SIGHUP", "no tmux session"},
		{"keeper killed", "exec sleep 1000", func(w *world, _ spawn.Status) {
			syscall.Kill(w.paneProcess("agent1").PID, syscall.SIGKILL)
		}, "", "no tmux session, and its keeper was killed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			began := time.Now()
			w.up(sh(ready+"read go; "+c.script), "agent1")
			st := w.status("agent1")
			if st.State != agent.Idle {
				t.Fatalf("before: %+v", st)
			}
			if c.kill != nil {
				c.kill(w, st)
			} else {
				w.tmux("send-keys", "-t", "=agent1:", "Enter")
			}
			testworld.WaitOr(w, func() bool {
				st = w.status("agent1")
				return st.State == agent.Dead && st.Detail == c.detail && st.Evidence == c.evidence
			}, func() string { return fmt.Sprintf("%+v", st) })
			if c.detail != "" && st.Since.Before(began.Truncate(time.Second)) {
				t.Errorf("since %v", st.Since)
			}
			if c.detail == "" && !st.Since.IsZero() {
				t.Errorf("since %v, which nobody knows", st.Since)
			}
			if c.evidence != "recorded by its keeper" {
				return
			}
			lines, err := w.l.LastLines(w.ctx, st, 1)
			if err != nil || len(lines) != 1 || !strings.HasPrefix(lines[0], "[agent1 ") {
				t.Errorf("last line %q %v", lines, err)
			}
		})
	}
}

// A program that lives without its session is not dead.
func TestInspectWithoutSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(sh(`trap "" HUP; `+ready+"while :; do sleep 0.1; done"), "agent1")
	pid := w.status("agent1").PID
	w.tmux("kill-session", "-t", "=agent1")
	st := w.status("agent1")
	if st.State != agent.Unknown || st.PID != pid || !strings.Contains(st.Evidence, fmt.Sprintf("process %d is running but its tmux session is gone", pid)) || !st.Alive() {
		t.Errorf("%+v", st)
	}
	// Down ends it, though there is no session. What up does is in TestUpSaysUnknown.
	if got := w.down(spawn.DownOptions{}); got["agent1"] != "ended" {
		t.Errorf("down: %v", got)
	}
	w.gone(processOf(pid), "the program")
}

// A tmux server that hangs: status answers in time, says so, and goes by
// process and report.
func TestInspectHungServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(demo{}, "agent1")
	w.down(spawn.DownOptions{})
	w.upReady(demo{}, "agent0")
	server := w.serverPID()
	testworld.Must(t, syscall.Kill(server, syscall.SIGSTOP))
	defer syscall.Kill(server, syscall.SIGCONT)
	ctx, cancel := context.WithTimeout(w.ctx, time.Second)
	defer cancel()
	began := time.Now()
	list, err := w.l.Inspect(ctx)
	testworld.Fails(t, err, "no answer")
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %v with a second allowed", took)
	}
	if st := list.Find("agent0"); st.State != agent.Idle || !strings.Contains(st.Evidence, "tmux does not answer") {
		t.Errorf("agent0: %+v", st)
	}
	if st := list.Find("agent1"); st.State != agent.Unknown || st.Evidence != "tmux does not answer" {
		t.Errorf("agent1: %+v", st)
	}
	// Nothing is started or ended on a guess.
	testworld.Fails(t, testworld.Err(w.l.Up(ctx, spawn.UpOptions{Plans: w.plans(demo{}, "agent0", "agent1")})), "", "up: no error")
	if log, err := w.l.Down(ctx, spawn.DownOptions{}); err == nil || len(log) != 0 {
		t.Errorf("down: %v %v", log, err)
	}
	syscall.Kill(server, syscall.SIGCONT)
	w.becomes("agent0", agent.Idle)
	w.answers("agent0")
}

func (w *world) serverPID() (pid int) {
	w.Helper()
	fmt.Sscan(w.tmux("display-message", "-p", "#{pid}"), &pid)
	return pid
}

// What an earlier start has left says nothing of this one.
func TestInspectStale(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(demo{}, "agent1")
	w.readyWithin = 200 * time.Millisecond
	old := testworld.Got(w.home.LoadReport("agent1"))(t)
	oldKeeper := testworld.Got(w.home.LoadKeeper("agent1"))(t)
	w.down(spawn.DownOptions{})
	w.up(sh("sleep 1000"), "agent1")
	testworld.Must(t, w.home.SaveReport("agent1", old))
	if st := w.status("agent1"); st.State != agent.Starting {
		t.Errorf("with the old report: %+v", st)
	}
	status := 9
	oldKeeper.EndedMS, oldKeeper.Status = time.Now().UnixMilli(), &status
	testworld.Must(t, w.home.SaveKeeper("agent1", oldKeeper))
	if st := w.status("agent1"); st.State == agent.Dead || st.Detail == "exited 9" {
		t.Errorf("with the old keeper's word: %+v", st)
	}
}

// Files that are not what they should be make a state unknown, and nothing
// worse.
func TestInspectCorrupt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(demo{}, "agent1", "agent2")
	good := w.status("agent2")
	files := []string{
		home.ReportDir + "/agent1.json", home.KeeperDir + "/agent1.json", home.LaunchDir + "/agent1.json", home.DesiredDir + "/agent1",
	}
	harms := map[string]func(path string) error{
		"empty":     func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"cut":       func(p string) error { return os.WriteFile(p, []byte(`{"start":"`), 0o600) },
		"no object": func(p string) error { return os.WriteFile(p, []byte(`[1,2]`), 0o600) },
		"bytes":     func(p string) error { return os.WriteFile(p, []byte("\x00\xff\xfe"), 0o600) },
		"numbers": func(p string) error {
			return os.WriteFile(p, []byte(`{"pid":-1,"pid_start":"x","ended_ms":1e99}`), 0o600)
		},
		"directory": func(p string) error { return os.Mkdir(p, 0o700) },
		"link":      func(p string) error { return os.Symlink("/etc/passwd", p) },
		"dangling":  func(p string) error { return os.Symlink("/nowhere", p) },
		"fifo":      func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"large":     func(p string) error { return os.WriteFile(p, make([]byte, 5<<20), 0o600) },
		"missing":   func(string) error { return nil },
	}
	for _, rel := range files {
		path := w.home.Path(rel)
		was := testworld.Got(os.ReadFile(path))(t)
		for name, harm := range harms {
			os.RemoveAll(path)
			testworld.Must(t, harm(path))
			st := w.status("agent1")
			switch {
			case !st.Alive():
				t.Errorf("%s %s: counts as %s (%s), and runs", rel, name, st.State, st.Evidence)
			case st.State == agent.Unknown && st.Evidence == "":
				t.Errorf("%s %s: unknown without evidence", rel, name)
			}
			if other := w.status("agent2"); other.State != agent.Idle || other.PID != good.PID {
				t.Errorf("%s %s: agent2 is %+v", rel, name, other)
			}
		}
		os.RemoveAll(path)
		testworld.Must(t, os.WriteFile(path, was, 0o600))
	}
	// With all of them broken down still ends it.
	for _, rel := range files {
		testworld.Must(t, os.WriteFile(w.home.Path(rel), []byte("{"), 0o600))
	}
	if got := w.down(spawn.DownOptions{}); !strings.HasSuffix(got["agent1"], "ended") || w.sessions() != "" {
		t.Errorf("down: %v, sessions %s", got, w.sessions())
	}
}

// Between the files and the session of a start an agent is neither dead nor
// down: who looks then must not put down a death.
func TestInspectWhileStarting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(demo{}, "agent1")
	la := testworld.Got(w.home.LoadLaunch("agent1"))(t)
	w.tmux("kill-session", "-t", "=agent1")
	w.becomes("agent1", agent.Dead)
	// An up that has come so far,
	la.Start, la.StartedMS = agent.NewStart(), time.Now().UnixMilli()
	testworld.Must(t, w.home.SaveLaunch(la))
	if st := w.status("agent1"); st.State != agent.Dead {
		t.Errorf("of an up that is gone: %+v", st)
	}
	// and is at work.
	other := w.stranger("netsky")
	holder := testworld.Got(json.Marshal(home.Holder{Process: other, Program: "netsky up"}))(t)
	testworld.Must(t, w.home.WriteFile(home.LockDir+"/up", holder, false))
	if st := w.status("agent1"); st.State != agent.Starting || !st.Alive() {
		t.Errorf("of an up at work: %+v", st)
	}
	la.StartedMS -= time.Hour.Milliseconds()
	testworld.Must(t, w.home.SaveLaunch(la))
	if st := w.status("agent1"); st.State != agent.Dead {
		t.Errorf("an hour later: %+v", st)
	}
}

// Counts of what waits come with the state, also of one that is down.
func TestInspectCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(demo{}, "agent0", "agent1")
	w.down(spawn.DownOptions{Agents: ids("agent1")})
	w.mail("agent1", "for later")
	testworld.Must(t, os.WriteFile(w.home.Path(home.Mailbox("agent1"), "poison", "x.json"), nil, 0o600))
	st := w.status("agent1")
	if st.State != agent.Down || st.Inbox != 1 || st.Poison != 1 || st.Claimed != 0 || st.Outbox != 0 {
		t.Errorf("%+v", st)
	}
	if st := w.status("agent9"); st.State != agent.Down || st.Evidence != "never started" {
		t.Errorf("agent9: %+v", st)
	}
	testworld.Equal(t, testworld.Got(w.bus.Count("agent1", bus.Inbox))(t), 1, "looking has moved mail")
}

// A person who splits an agent's window, or looks at it from a second session,
// changes nothing about whose session it is.
func TestPersonInTheWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(demo{}, "agent1", "agent2")
	before := w.status("agent1")
	w.tmux("split-window", "-b", "-d", "-t", "=agent1:", "exec sleep 1000")
	w.tmux("new-window", "-d", "-t", "=agent1:", "exec sleep 1000")
	w.tmux("new-session", "-d", "-s", "mine", "-t", "=agent2")
	if st := w.status("agent1"); st.Pane() != before.Pane() || st.PID != before.PID || st.State != agent.Idle {
		t.Errorf("agent1: %+v pane %s, was %s", st, st.Pane(), before.Pane())
	}
	if p := w.up(demo{}, "agent1", "agent2"); p[0].Step != spawn.StepAlready || p[1].Step != spawn.StepAlready {
		t.Errorf("up: %+v", p)
	}
	w.answers("agent2")
	if got := w.down(spawn.DownOptions{}); got["agent1"] != "asked acked ended" || got["agent2"] != "asked acked ended" {
		t.Errorf("down: %v", got)
	}
	if list, err := w.l.Remnants(w.ctx); err != nil || len(list) != 0 {
		t.Errorf("remnants %v %v", list, err)
	}
}

// Statuses come in the order in which people list agents.
func TestInspectOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range ids("agentinfinity", "agent10", "agent2", "agent0", "owner") {
		testworld.Must(t, w.bus.Make(id))
	}
	list := testworld.Got(w.l.Inspect(w.ctx))(t)
	var got []agent.ID
	for _, st := range list {
		got = append(got, st.Agent)
	}
	if want := ids("agent0", "agent2", "agent10", "agentinfinity"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	testworld.Must(t, os.RemoveAll(w.home.Path(home.Channels)))
	if list, err := w.l.Inspect(w.ctx); err != nil || len(list) != 0 {
		t.Errorf("without mailboxes: %v %v", list, err)
	}
	testworld.Fails(t, testworld.Err(os.Stat(filepath.Join(w.dir, "s"))), "", "looking has started a tmux server")
}

// What a person runs in an agent's session is not ended by an up: the agent is
// not replaced, and that is said.
func TestUpKeepsPersonsPane(t *testing.T) {
	t.Parallel()
	for _, killed := range []string{"program", "keeper"} {
		t.Run(killed, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.upReady(demo{}, "agent1", "agent2")
			w.tmux("split-window", "-d", "-t", "=agent1:", "echo $$ >"+w.work()+"/person; exec sleep 1000")
			person := w.process(w.work() + "/person")
			k := testworld.Got(w.home.LoadKeeper("agent1"))(t)
			victim := k.Process
			if killed == "keeper" {
				victim = k.Own
			}
			testworld.Must(t, victim.Signal(syscall.SIGKILL))
			w.becomes("agent1", agent.Dead)
			p := w.up(demo{}, "agent1", "agent2")
			if p[0].Step != spawn.StepFailed || !errors.Is(p[0].Err, spawn.ErrPerson) || p[1].Step != spawn.StepAlready {
				t.Errorf("up: %+v", p)
			}
			w.alive(person, "what a person runs")
			testworld.Must(t, person.Signal(syscall.SIGKILL))
			testworld.WaitOr(w, func() bool { return w.up(demo{}, "agent1")[0].Step == spawn.StepReady }, func() string { return "not replaced" })
		})
	}
}
