package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/daemon"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/testworld"
	"netsky/spawn"
	"netsky/store"
)

// There is one daemon a home; a second one is refused and says why.
func TestOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	testworld.ErrorIs(t, testworld.Err(daemon.Ping(w.ctx, w.home)), daemon.ErrNotRunning, "ping of none")
	testworld.Equal(t, daemon.Wake(w.ctx, w.home), nil, "wake of none")
	testworld.Equal(t, testworld.Err(daemon.Stop(w.ctx, w.home)), nil, "stop of none")
	first := w.start()
	pong, started, err := daemon.Start(w.ctx, w.home, []string{netsky, "daemon", "run"}, w.env)
	if err != nil || started != "" || pong.PID != first.PID || pong.Schema != store.Schema() || pong.Version == "" {
		t.Errorf("%+v %v %v", pong, started, err)
	}
	if since := time.Since(time.UnixMilli(pong.StartMS)); since < 0 || since > time.Minute {
		t.Errorf("started %v ago", since)
	}
	err = daemon.Run(w.ctx, daemon.Options{Home: w.home, Bus: w.bus, Launcher: w.l, Log: slog.New(slog.DiscardHandler)})
	testworld.ErrorIs(t, err, home.ErrLocked, "a second one")
	cmd := exec.Command(netsky, "daemon", "run")
	cmd.Env = w.env
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "already running") {
		t.Errorf("a second process: %v, %s", err, out)
	}
	info, err := os.Stat(w.home.Path(home.DaemonSocket))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket %v %v", info, err)
	}
	testworld.Equal(t, testworld.Err(daemon.Stop(w.ctx, w.home)), nil)
	if first.Alive() {
		t.Error("the daemon lives after Stop")
	}
	for _, rel := range []string{home.DaemonSocket, home.DaemonPID} {
		testworld.ErrorIs(t, testworld.Err(os.Stat(w.home.Path(rel))), fs.ErrNotExist, "%s after Stop", rel)
	}
}

// What runs below an agent gets no way in to the dashboard, whatever its environment says.
func TestDashboardIsTheOwners(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	testworld.Must(t, w.bus.Make(agent.Clone(1)))
	testworld.Must(t, w.home.SaveKeeper(agent.Clone(1), agent.Keeper{Start: "s1", Own: proc.Self()}))
	for _, args := range [][]string{{"--json"}, {"--rotate"}, {"--sign-out", "all"}} {
		cmd := exec.Command(netsky, append([]string{"dashboard"}, args...)...)
		cmd.Env = w.env
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "only the owner can do this") {
			t.Errorf("%q: %v, %s", args, err, out)
		}
	}
}

// Several who start it at once get the same one.
func TestStartAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pongs := make([]daemon.Pong, 6)
	var wg sync.WaitGroup
	for i := range pongs {
		wg.Go(func() {
			var err error
			if pongs[i], _, err = daemon.Start(w.ctx, w.home, []string{netsky, "daemon", "run"}, w.env); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, p := range pongs {
		if p.PID != pongs[0].PID {
			t.Errorf("%+v", pongs)
			break
		}
	}
}

// What a killed daemon leaves does not keep the next one out.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.start()
	w.kill(first)
	for _, rel := range []string{home.DaemonSocket, home.DaemonPID} {
		testworld.Equal(t, testworld.Err(os.Stat(w.home.Path(rel))), nil, "the dead daemon left no %s: the test is no test", rel)
	}
	testworld.ErrorIs(t, testworld.Err(daemon.Ping(w.ctx, w.home)), daemon.ErrNotRunning, "ping of a dead one")
	testworld.Equal(t, testworld.Err(daemon.Stop(w.ctx, w.home)), nil, "stop of a dead one")
	if second := w.start(); second.PID == first.PID {
		t.Errorf("the same daemon: %v", second)
	}
}

// A program that can't be the daemon: Start says so and does not wait for it.
func TestStartFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, started, err := daemon.Start(w.ctx, w.home, []string{"/bin/false"}, w.env)
	if err == nil || started != "" || !strings.Contains(err.Error(), "ended at once") {
		t.Errorf("%v %v", started, err)
	}
	if _, _, err = daemon.Start(w.ctx, w.home, []string{"/nowhere"}, w.env); err == nil {
		t.Error("no error of a missing program")
	}
}

// A daemon that comes to its lock after all was said to be down ends, and whoever
// has started it hears why.
func TestStartUnwanted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	testworld.Must(t, home.Desired(w.home).Set(agent.DaemonName, false, "owner"))
	argv := []string{netsky, "daemon", "run", "--wanted"}
	if _, started, err := daemon.Start(w.ctx, w.home, argv, w.env); !errors.Is(err, daemon.ErrUnwanted) || started != "" {
		t.Errorf("%v %v", started, err)
	}
	if held, err := w.home.Locked(agent.DaemonName); held || err != nil {
		t.Errorf("held %v %v", held, err)
	}
	testworld.Must(t, home.Desired(w.home).Set(agent.DaemonName, true, "owner"))
	if _, started, err := daemon.Start(w.ctx, w.home, argv, w.env); err != nil || started != daemon.Began {
		t.Errorf("wanted: %v %v", started, err)
	}
}

// Without a database that can be read the daemon runs and mail goes on. What is
// to be recorded waits, and comes in when the database can be had.
func TestBrokenDatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	testworld.Must(t, w.home.WriteFile(home.DBFile, []byte(strings.Repeat("not a database. ", 4096)), false))
	w.start()
	w.up(demo{}, "agent0", "agent1")
	id := w.mail("agent0", "/delegate agent1 hello")
	w.answered(id)
	if s, err := store.SpoolSize(w.home); err != nil || s.Files == 0 {
		t.Errorf("spool %+v %v", s, err)
	}
	testworld.Equal(t, testworld.Err(daemon.Ping(w.ctx, w.home)), nil)
	testworld.Must(t, os.Remove(w.home.Path(home.DBFile)))
	start := w.statuses().Find("agent1").Start
	testworld.WaitOr(w, func() bool {
		s, err := store.SpoolSize(w.home)
		return err == nil && s.Files == 0
	}, func() string { return "the spool is not taken in" })
	db := w.db()
	testworld.WaitOr(w, func() bool {
		s, err := db.Session(w.ctx, start)
		return err == nil && s.Actor == "agent1"
	}, func() string { return "the start is not on record" })
	testworld.WaitOr(w, func() bool {
		m, err := db.Message(w.ctx, id)
		return err == nil && m.From == agent.Owner
	}, func() string { return "the message is not on record" })
}

// The owner's mail is filed and on record, and stays to be read.
func TestOwnersMail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.up(demo{}, "agent0")
	answer := w.answered(w.mail("agent0", "hello"))
	testworld.WaitOr(w, func() bool {
		names, err := w.bus.Names(agent.Owner, bus.Delivered)
		return err == nil && len(names) == 1
	}, func() string { return "not filed" })
	db := w.db()
	testworld.WaitOr(w, func() bool {
		d, err := db.Delivery(w.ctx, answer.Envelope.ID, "agent0", agent.Owner)
		return err == nil && d.State == store.Delivered
	}, func() string { return "not on record" })
}

// Sends of an agent that only writes files go out while the daemon runs.
func TestOutbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.up(demo{}, "agent0", "agent1")
	path := w.home.Path(home.Mailbox("agent1"), "outbox", "x.json")
	text := `{"from":"agent1","to":"agent0","text":"by file","ts":"` + time.Now().UTC().Format(time.RFC3339) + `"}`
	testworld.Must(t, os.WriteFile(path, []byte(text), 0o600))
	testworld.WaitOr(w, func() bool {
		names, err := w.bus.Names("agent1", bus.Sent)
		return err == nil && len(names) == 1
	}, func() string { return "not sent\n" + w.log() })
}

// The daemon's hub is nobody's agent, and keeps no tmux server alive.
func TestHub(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.up(demo{}, "agent1")
	argv := w.l.Tmux.Argv("list-sessions", "-F", "#{session_name}")
	list := func() string {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = w.l.Tmux.Environ()
		out, _ := cmd.CombinedOutput()
		return strings.Join(strings.Fields(string(out)), " ")
	}
	testworld.WaitOr(w, func() bool { return list() == "agent1 netsky-hub" }, func() string { return list() })
	if s := w.statuses(); len(s) != 1 {
		t.Errorf("%+v", s)
	}
	testworld.Got(w.l.Down(w.ctx, spawn.DownOptions{}))(t)
	testworld.WaitOr(w, func() bool {
		return strings.Contains(list(), "no server") || strings.Contains(list(), "error connecting")
	},
		func() string { return "the server lives on: " + list() })
}

// Where a daemon that was killed has served, another program may listen by the
// time the next one is up: nobody is sent there with our token.
func TestAddressOfTheDead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.kill(w.start())
	for rel, text := range map[string]string{
		home.ConfigFile: "[dashboard]\nlisten = \"\"\n", // so that no other address is put there
		daemon.URLFile:  "http://127.0.0.1:1\n",
	} {
		testworld.Must(t, w.home.WriteFile(rel, []byte(text), false))
	}
	w.start()
	if data, err := w.home.ReadFile(daemon.URLFile, 4096); err == nil {
		t.Errorf("the daemon is up, and says to be at %s", data)
	}
}

// Who removes run/ beneath a daemon that runs gets no second one, and the first
// can be asked again a moment later, and ended.
func TestRunDirRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start()
	// The daemon takes and makes locks there meanwhile.
	testworld.WaitOr(w, func() bool { return os.RemoveAll(w.home.Path(home.RunDir)) == nil }, w.log)
	if who, running := w.home.LockHolder(agent.DaemonName); !running || who.Process != p {
		t.Errorf("the daemon is %+v, %v; want %+v", who, running, p)
	}
	second := exec.Command(netsky, "daemon", "run")
	second.Env = w.env
	if out, err := second.CombinedOutput(); err == nil || !strings.Contains(string(out), "held by another process") {
		t.Errorf("a second daemon: %v, %s", err, out)
	}
	testworld.WaitOr(w, func() bool { pong, err := daemon.Ping(w.ctx, w.home); return err == nil && pong.PID == p.PID },
		func() string { return "no answer\n" + w.log() })
	testworld.Equal(t, w.start(), p, "started")
	testworld.WaitOr(w, func() bool { _, err := os.Stat(w.home.Path(home.DaemonPID)); return err == nil },
		func() string { return "no pid file" })
	testworld.Must(t, os.RemoveAll(w.home.Path(home.RunDir)))
	if ended, err := daemon.Stop(w.ctx, w.home); !ended || err != nil || p.Alive() {
		t.Errorf("Stop() = %v, %v; alive %v", ended, err, p.Alive())
	}
}

// A file that names a process is no proof that it is the daemon: without the
// lock, or without a birth, nobody is ended.
func TestStopEndsOnlyTheDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := exec.Command("sleep", "600")
	testworld.Must(t, other.Start())
	defer func() { other.Process.Kill(); other.Wait() }()
	p := processOf(other.Process.Pid)
	for _, running := range []bool{false, true} {
		if running {
			w.start()
		}
		for _, birth := range []int64{0, p.Start} {
			line := fmt.Sprintf(`{"pid":%d,"pid_start":%d,"program":"netsky daemon"}`, p.PID, birth)
			if running && birth != 0 {
				continue // that is the owner's own lie: who may write there may kill
			}
			testworld.Must(t, os.WriteFile(w.home.Path(home.LockDir, agent.DaemonName), []byte(line), 0o600))
			if ended, err := daemon.Stop(w.ctx, w.home); ended != running || err != nil {
				t.Errorf("running %v, birth %d: Stop() = %v, %v", running, birth, ended, err)
			}
			if !p.Alive() {
				t.Fatalf("running %v, birth %d: a process was ended that is not the daemon", running, birth)
			}
			testworld.ErrorIs(t, testworld.Err(daemon.Ping(w.ctx, w.home)), daemon.ErrNotRunning, "the daemon is there")
		}
	}
}

// A start that is broken off leaves nothing behind, also of a program that does not
// answer and takes no SIGTERM.
func TestStartBrokenOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(w.ctx)
	pid := filepath.Join(filepath.Dir(w.home.Root()), "pid")
	script := `trap "" TERM; echo $$ >` + pid + `.new; mv ` + pid + `.new ` + pid + `; while :; do sleep 0.1; done`
	returned := make(chan error, 1)
	go func() {
		_, _, err := daemon.Start(ctx, w.home, []string{"/bin/sh", "-c", script}, w.env)
		returned <- err
	}()
	var p proc.Process
	testworld.WaitOr(w, func() bool {
		text, err := os.ReadFile(pid)
		if err == nil {
			n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
			p = processOf(n)
		}
		return err == nil
	}, func() string { return "the program was not started" })
	t.Cleanup(func() { proc.End(context.Background(), []proc.Process{p}, 0) })
	cancel()
	select {
	case err := <-returned:
		testworld.ErrorIs(t, err, context.Canceled, "Start")
	case <-time.After(20 * time.Second):
		t.Fatal("Start waits for a program that ignores SIGTERM")
	}
	if p.Alive() {
		t.Errorf("process %d still runs", p.PID)
	}
}
