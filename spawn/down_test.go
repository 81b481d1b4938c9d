package spawn_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/testworld"
	"netsky/spawn"
	"netsky/store"
)

// By default agent0 and the clones go, each asked before any is ended;
// agentinfinity and the ticker stay.
func TestDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	plans := w.plans(demo{}, "agent0", "agent1", "agent42", "agentinfinity")
	testworld.Got(w.l.Up(w.ctx, spawn.UpOptions{Plans: plans, Ticker: true}))(t)
	starts := w.statuses()
	var told []string
	log := testworld.Got(w.l.Down(w.ctx, spawn.DownOptions{By: "owner", Report: func(p spawn.DownProgress) {
		told = append(told, p.What+" "+string(p.Step))
	}}))(t)
	if want := []string{"agent0 asked", "agent1 asked", "agent42 asked"}; !slices.Equal(told[:3], want) {
		t.Errorf("told %v, want first %v", told, want)
	}
	for _, name := range []string{"agent0", "agent1", "agent42"} {
		testworld.Equal(t, steps(log)[name], "asked acked ended", "%s", name)
		if st := w.status(name); st.State != agent.Down || st.Wanted || st.By != "owner" {
			t.Errorf("%s: %+v", name, st)
		}
		if n, err := w.bus.Count(agent.ID(name), bus.Inbox); n != 0 || err != nil {
			t.Errorf("%s: %d in the inbox, %v", name, n, err)
		}
	}
	testworld.Equal(t, w.sessions(), "agentinfinity netsky-ticker", "sessions")
	if st := w.status("agentinfinity"); st.State != agent.Idle || !st.Wanted {
		t.Errorf("agentinfinity: %+v", st)
	}
	if list, err := w.l.Remnants(w.ctx); err != nil || !strings.HasPrefix(remnants(list), "tmux session agentinfinity, tmux session netsky-ticker, process ") {
		t.Errorf("remnants: %s, %v", remnants(list), err)
	}
	db := testworld.Got(store.OpenRead(w.ctx, w.home))(t)
	defer db.Close()
	for _, id := range ids("agent0", "agent1") {
		s, err := db.Session(w.ctx, starts[id].Start)
		if err != nil || s.State != agent.Down || s.Reason != "down: finished" || s.Ended == 0 {
			t.Errorf("%s on record: %+v %v", id, s, err)
		}
	}

	// All of it, and then nothing.
	if got := w.down(spawn.DownOptions{All: true}); got["agentinfinity"] != "asked acked ended" || got["netsky-ticker"] != "ended" || len(got) != 2 {
		t.Errorf("down --all: %v", got)
	}
	if list, err := w.l.Remnants(w.ctx); err != nil || len(list) != 0 {
		t.Errorf("remnants: %s, %v", remnants(list), err)
	}
	if got := w.down(spawn.DownOptions{All: true}); len(got) != 0 {
		t.Errorf("nothing runs, down did %v", got)
	}
	if got := w.down(spawn.DownOptions{Force: true}); len(got) != 0 {
		t.Errorf("nothing runs, down --force did %v", got)
	}
}

// Force ends at once and sends nobody anything.
func TestDownForce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(demo{}, "agent0", "agent1")
	if got := w.down(spawn.DownOptions{Force: true}); got["agent0"] != "ended" || got["agent1"] != "ended" || len(got) != 2 {
		t.Errorf("%v", got)
	}
	for _, id := range ids("agent0", "agent1") {
		for _, p := range []bus.Place{bus.Inbox, bus.Claimed, bus.Delivered, bus.Poison} {
			if names, err := w.bus.Names(id, p); err != nil || len(names) != 0 {
				t.Errorf("%s %s: %v %v", id, p, names, err)
			}
		}
	}
	testworld.Equal(t, w.sessions(), "", "sessions")
}

// An agent that answers nothing is waited for, and then ended.
func TestDownTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(stays(), "agent1", "agent2")
	var asked, ended time.Time
	log := testworld.Got(w.l.Down(w.ctx, spawn.DownOptions{AckWithin: 700 * time.Millisecond, Report: func(p spawn.DownProgress) {
		switch {
		case p.Step == spawn.DownAsked && asked.IsZero():
			asked = time.Now()
			if n, err := w.bus.Count(p.Agent, bus.Inbox); n != 1 || err != nil {
				t.Errorf("%s: %d in the inbox, %v", p.Agent, n, err)
			}
		case p.Step == spawn.DownTimeout && (p.After < 600*time.Millisecond || p.After > 10*time.Second):
			t.Errorf("timeout after %v", p.After)
		case p.Step == spawn.DownEnded && ended.IsZero():
			ended = time.Now()
		}
	}}))(t)
	for _, name := range []string{"agent1", "agent2"} {
		testworld.Equal(t, steps(log)[name], "asked timeout ended", "%s", name)
	}
	if waited := ended.Sub(asked); waited < 600*time.Millisecond {
		t.Errorf("waited %v", waited)
	}
	// The unclaimed requests are taken back.
	for _, id := range ids("agent1", "agent2") {
		if n, err := w.bus.Count(id, bus.Inbox); n != 0 || err != nil {
			t.Errorf("%s: %d in the inbox, %v", id, n, err)
		}
		if names, err := w.bus.Names(id, bus.Delivered); len(names) != 1 || err != nil {
			t.Errorf("%s: delivered %v, %v", id, names, err)
		}
	}
}

// What goes by itself while down waits is not waited for longer.
func TestDownCloses(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *world, st spawn.Status){
		"session": func(w *world, st spawn.Status) { w.tmux("kill-session", "-t", "=agent1") },
		"program": func(w *world, st spawn.Status) { syscall.Kill(st.PID, syscall.SIGTERM) },
		"keeper":  func(w *world, st spawn.Status) { syscall.Kill(w.paneProcess("agent1").PID, syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.upReady(stays(), "agent1", "agent2")
			st := w.status("agent1")
			ctx, cancel := context.WithCancel(w.ctx)
			defer cancel()
			log, err := w.l.Down(ctx, spawn.DownOptions{Report: func(p spawn.DownProgress) {
				switch {
				case p.Step == spawn.DownAsked && p.Agent == "agent2":
					end(w, st)
				case p.Step == spawn.DownClosed: // agent2 would be waited for for a minute
					cancel()
				}
			}})
			if stopped := new(spawn.InterruptedError); !errors.As(err, &stopped) {
				t.Fatal(err)
			}
			if got := steps(log); got["agent1"] != "asked closed ended" || got["agent2"] != "asked left" {
				t.Errorf("%v", got)
			}
		})
	}
}

// A dead agent has nobody to ask.
func TestDownDead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(demo{}, "agent0", "agent1")
	w.mail("agent1", "/crash 4")
	w.becomes("agent1", agent.Dead)
	if got := w.down(spawn.DownOptions{}); got["agent1"] != "ended" || got["agent0"] != "asked acked ended" {
		t.Errorf("%v", got)
	}
	if n, err := w.bus.Count("agent1", bus.Inbox); n != 0 || err != nil {
		t.Errorf("agent1: %d in the inbox, %v", n, err)
	}
}

// One agent's failure does not stop the rest.
func TestDownUnasked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(demo{}, "agent0", "agent2")
	w.upReady(stays(), "agent1") // a receiver would make its inbox anew
	inbox := w.home.Path(home.Mailbox("agent1"), "inbox")
	testworld.Must(t, os.Rename(inbox, inbox+".away"))
	testworld.Must(t, os.WriteFile(inbox, nil, 0o600))
	var reasons []error
	log, err := w.l.Down(w.ctx, spawn.DownOptions{Report: func(p spawn.DownProgress) {
		if p.Step == spawn.DownUnasked {
			reasons = append(reasons, p.Err)
		}
	}})
	testworld.Equal(t, err, nil)
	if got := steps(log); got["agent0"] != "asked acked ended" || got["agent1"] != "unasked ended" || got["agent2"] != "asked acked ended" {
		t.Errorf("%v", got)
	}
	if len(reasons) != 1 || reasons[0] == nil {
		t.Errorf("reasons %v", reasons)
	}
}

// A home that takes no more writes: with force, all of it ends, and the error says
// that this is not on file.
func TestDownForceWithoutHome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(demo{}, "agent0", "agent1")
	w.l.Journal.Close()
	w.l.Journal = store.NewJournal(w.home)
	for _, rel := range []string{home.DesiredDir, home.SpoolDir, home.LockDir, home.DBFile, home.Channels} {
		path := w.home.Path(rel)
		testworld.Wait(t, rel+" to be a file", func() bool { // agents that are up may write there meanwhile
			return os.RemoveAll(path) == nil && os.WriteFile(path, []byte("not what it was\n"), 0o400) == nil
		})
	}
	testworld.Fails(t, testworld.Err(w.l.Down(w.ctx, spawn.DownOptions{})), "", "without force: no error, though nobody can be asked or kept out")
	log, err := w.l.Down(w.ctx, spawn.DownOptions{Force: true, All: true})
	if err == nil || !strings.Contains(err.Error(), "could not save desired state; agents may be started again") || strings.Contains(err.Error(), "\n") {
		t.Errorf("with force: %v", err)
	}
	got := steps(log)
	if !strings.HasSuffix(got["agent0"], "ended") || !strings.HasSuffix(got["agent1"], "ended") || !strings.Contains(fmt.Sprint(got), "warning") {
		t.Errorf("%v", got)
	}
	testworld.Equal(t, w.sessions(), "", "sessions")
}

// What is begun with an up, and ended with a down, can't come between the two:
// they have the lock meanwhile.
func TestUpAndDownWithin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	locked := func(when string) {
		t.Helper()
		if lock, err := w.home.Lock("up"); !errors.Is(err, home.ErrLocked) {
			lock.Unlock()
			t.Errorf("%s: %v, want the lock to be held", when, err)
		}
	}
	refused := errors.New("refused")
	plans := w.plans(demo{}, "agent1")
	if _, err := w.l.Up(w.ctx, spawn.UpOptions{Plans: plans, Begin: func() error { return refused }}); !errors.Is(err, refused) || w.sessions() != "" {
		t.Errorf("%v, sessions %q; want none after an error", err, w.sessions())
	}
	begun := false
	if _, err := w.l.Up(w.ctx, spawn.UpOptions{Plans: plans, Begin: func() error { begun = true; locked("up"); return nil }}); err != nil || !begun {
		t.Errorf("%v, begun: %v", err, begun)
	}
	_, err := w.l.Down(w.ctx, spawn.DownOptions{Within: func(end func(...agent.ID) error) error {
		locked("before the end")
		if err := end(); err != nil || w.sessions() != "" {
			t.Errorf("%v, sessions %q", err, w.sessions())
		}
		locked("after the end")
		return refused
	}})
	testworld.ErrorIs(t, err, refused)
}

// stranger starts a process of nobody's that looks like an agent's.
func (w *world) stranger(name string, words ...string) proc.Process {
	w.Helper()
	program := filepath.Join(w.dir, "stranger", name)
	testworld.Must(w, os.MkdirAll(filepath.Dir(program), 0o700))
	sleep := testworld.Got(exec.LookPath("sleep"))(w)
	sleep = testworld.Got(filepath.EvalSymlinks(sleep))(w)
	// A link keeps the program's name in the process list.
	testworld.Must(w, os.Symlink(sleep, program))
	cmd := exec.Command(program, "1000")
	cmd.Args[0] = name + " " + strings.Join(words, " ")
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, words...)
	cmd.Dir = w.work()
	testworld.Must(w, cmd.Start())
	w.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return processOf(cmd.Process.Pid)
}

// A daemon that was started from inside an agent survives that agent, both its
// down and its replacement.
func TestDaemonOutlivesItsAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "NETSKY_TMUX_SOCKET=x")
	w.l.Environ[len(w.l.Environ)-1] = "NETSKY_TMUX_SOCKET=" + w.socket
	w.upReady(sh("setsid "+netsky+" daemon run & "+ready+"exec sleep 1000"), "agent0")
	var daemon proc.Process
	testworld.WaitOr(w, func() bool {
		who, ok := w.home.LockHolder(agent.DaemonName)
		daemon = who.Process
		_, err := os.Stat(w.home.Path(home.DaemonSocket))
		return ok && err == nil
	}, func() string { return "no daemon" })
	syscall.Kill(w.status("agent0").PID, syscall.SIGKILL)
	w.becomes("agent0", agent.Dead)
	w.upReady(stays(), "agent0")
	w.alive(daemon, "the daemon after its agent was replaced")
	w.down(spawn.DownOptions{AckWithin: 100 * time.Millisecond})
	w.alive(daemon, "the daemon after down")
}

// A death that a down finds is recorded as one, and the agent is down since then.
func TestDownFindsDeath(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(stays(), "agent1", "agent2", "agent3")
	starts := map[string]string{}
	for _, id := range []string{"agent1", "agent2", "agent3"} {
		starts[id] = w.status(id).Start
	}
	for _, id := range []string{"agent1", "agent2"} {
		k := testworld.Got(w.home.LoadKeeper(agent.ID(id)))(t)
		victim := k.Own
		if id == "agent2" {
			victim = k.Process
		}
		testworld.Must(t, victim.Signal(syscall.SIGKILL))
		testworld.Wait(t, id+" dead", func() bool { return w.status(id).State == agent.Dead })
	}
	before := time.Now().Add(-time.Second)
	w.down(spawn.DownOptions{Force: true})
	db := testworld.Got(store.OpenRead(w.ctx, w.home))(t)
	defer db.Close()
	for id, want := range map[string]string{"agent1": "died: its keeper was killed", "agent2": "died: killed by SIGKILL"} {
		s, err := db.Session(w.ctx, starts[id])
		if err != nil || s.State != agent.Dead || !strings.HasPrefix(s.Reason, "died") {
			t.Errorf("%s on record: %+v %v", id, s, err)
		}
		logs, err := db.Logs(w.ctx, store.LogFilter{Actor: agent.ID(id)})
		if n := len(slices.DeleteFunc(logs.Items, func(l store.Log) bool { return l.Text != want })); err != nil || n != 1 {
			t.Errorf("%s: %d logs %q, %v", id, n, want, err)
		}
	}
	if s, err := db.Session(w.ctx, starts["agent3"]); err != nil || s.State != agent.Down {
		t.Errorf("agent3 on record: %+v %v", s, err)
	}
	for id := range starts {
		if st := w.status(id); st.State != agent.Down || id != "agent2" && st.Since.Before(before) {
			t.Errorf("%s: %+v", id, st)
		}
	}
}

// What is down is down since its end, not since the request.
func TestDownSince(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(stays(), "agent1")
	w.down(spawn.DownOptions{AckWithin: 700 * time.Millisecond})
	d := testworld.Got(home.Desired(w.home).Load("agent1"))(t)
	k, err := w.home.LoadKeeper("agent1")
	if err != nil || k.EndedMS <= d.AtMS {
		t.Fatalf("ended %d, wanted down %d: %v", k.EndedMS, d.AtMS, err)
	}
	if st := w.status("agent1"); st.Since.UnixMilli() != k.EndedMS {
		t.Errorf("down since %v, ended %d", st.Since, k.EndedMS)
	}
}
