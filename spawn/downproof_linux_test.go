package spawn_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/testworld"
	"netsky/spawn"
	"netsky/tmux"
)

// leaver is a ready agent that has started a process which has left its session
// and its environment, and whose parent has died.
func (w *world) leaver() (program, func() proc.Process) {
	file := filepath.Join(w.dir, "left")
	script := `env -i /usr/bin/setsid /bin/sh -c 'echo $$ >` + file + `; exec sleep 7777' &
` + ready + "while :; do sleep 60; done"
	return sh("(" + strings.Replace(script, "&\n", "&)\n", 1)), func() proc.Process {
		p := w.process(file)
		w.Cleanup(func() { _ = p.Signal(syscall.SIGKILL) })
		return p
	}
}

// orphan starts a process that is below nobody who looks for suspects.
func (w *world) orphan(name string) proc.Process {
	w.Helper()
	file := filepath.Join(w.dir, name)
	testworld.Must(w, exec.Command("/bin/sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo $! >"+file).Run())
	p := w.process(file)
	w.Cleanup(func() { _ = p.Signal(syscall.SIGKILL) })
	return p
}

func (w *world) unproved() (names []string) {
	for _, r := range w.l.Unproved() {
		names = append(names, string(r.Agent))
	}
	return names
}

// A session that a person ends leaves a proof, if nothing was left.
func TestKillSessionProves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(demo{}, "agent1")
	k := testworld.Got(w.home.LoadKeeper("agent1"))(t)
	w.tmux("kill-session", "-t", "=agent1:")
	testworld.WaitOr(w, k.Own.Gone, func() string { return "the keeper stays" })
	testworld.EqualList(t, w.unproved(), nil, "unproved")
}

// With the keeper killed nobody can know what had left it: that is said, also
// after the agent has been started again.
func TestDownAfterKeeperKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, left := w.leaver()
	w.upReady(r, "agent1")
	w.upReady(demo{}, "agent2")
	p := left()
	k := testworld.Got(w.home.LoadKeeper("agent1"))(t)
	testworld.Must(t, k.Own.Signal(syscall.SIGKILL))
	testworld.WaitOr(w, func() bool { return k.Own.Gone() && w.status("agent1").Pane() == "" }, func() string { return "the keeper lives" })
	w.down(spawn.DownOptions{Force: true})
	testworld.EqualList(t, w.unproved(), []string{"agent1"}, "unproved")
	w.alive(p, "what has left")
	for range 2 {
		w.upReady(demo{}, "agent1")
		w.down(spawn.DownOptions{Force: true})
		if list := w.l.Unproved(); len(list) != 1 || list[0].Agent != "agent1" || list[0].Since.UnixMilli() != k.StartedMS {
			t.Errorf("after another start: %+v, want the start of the killed keeper", list)
		}
	}
	w.alive(p, "what has left")
}

// What could be of a killed keeper's start is named, until somebody's word ends
// the doubt, also after later starts; a start that runs is none of it.
func TestTakeWord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, left := w.leaver()
	w.upReady(r, "agent1")
	p := left()
	k := testworld.Got(w.home.LoadKeeper("agent1"))(t)
	testworld.Must(t, k.Own.Signal(syscall.SIGKILL))
	testworld.WaitOr(w, func() bool { return k.Own.Gone() && w.status("agent1").Pane() == "" }, func() string { return "the keeper lives" })
	w.upReady(demo{}, "agent1")
	list := w.l.Unproved()
	if len(list) != 1 || !list[0].Earlier || list[0].Start != k.Start {
		t.Fatalf("unproved: %+v, want the start %s as an earlier one", list, k.Start)
	}
	if err := w.l.Prove(w.ctx); err != nil || len(w.unproved()) != 1 {
		t.Errorf("proved with a process that has left: %v, %v", w.unproved(), err)
	}
	hub := testworld.Got(w.l.Tmux.OpenHub(w.ctx, spawn.HubSession))(t)
	defer hub.Close()
	own := testworld.Got(w.l.Tmux.HubProcess(w.ctx, spawn.HubSession))(t)
	suspects, err := w.l.Suspects(list)
	if err != nil || !slices.Contains(suspects, p) {
		t.Errorf("suspects %v, %v; want %v among them", suspects, err, p)
	}
	// An ordinary process of this user's shows no sign of it; what has robbed itself of its environment may be its.
	ordinary := w.orphan("ordinary")
	may, rest := w.l.Likely(list, []proc.Process{p, ordinary})
	if !slices.Equal(may, []proc.Process{p}) || !slices.Equal(rest, []proc.Process{ordinary}) {
		t.Errorf("may be: %v, without a sign: %v; want %v and %v", may, rest, p, ordinary)
	}
	if slices.ContainsFunc(suspects, func(p proc.Process) bool { return p.PID == own }) {
		t.Errorf("suspects %v name the hub's own process %d", suspects, own)
	}
	if now, err := w.home.LoadKeeper("agent1"); err != nil || slices.Contains(suspects, now.Own) || slices.Contains(suspects, now.Process) {
		t.Errorf("suspects %v name the agent that runs (%v)", suspects, err)
	}
	running := list[0]
	running.Start, running.Earlier = w.status("agent1").Start, false
	if err := w.l.TakeWord(w.ctx, []spawn.Remnant{running}, agent.Owner); err != nil || len(w.unproved()) != 1 {
		t.Errorf("the word about another start: %v, %v", w.unproved(), err)
	}
	if err := w.l.TakeWord(w.ctx, list, agent.Owner); err != nil || len(w.unproved()) != 0 {
		t.Errorf("after the word: %v, %v", w.unproved(), err)
	}
	w.alive(p, "what has left")
	w.down(spawn.DownOptions{Force: true})
	testworld.EqualList(t, w.unproved(), nil, "after a later down")

	// Of the last start, whether its record is there or not.
	for _, gone := range []bool{false, true} {
		w.upReady(demo{}, "agent1")
		k = testworld.Got(w.home.LoadKeeper("agent1"))(t)
		young := w.orphan(fmt.Sprint("orphan-", gone))
		if gone {
			w.down(spawn.DownOptions{Force: true})
			err = os.Remove(w.home.Path(home.KeeperDir, "agent1.json"))
		} else {
			k.Above = proc.Lineage{} // as if nothing could be told
			if err = w.home.SaveKeeper("agent1", k); err == nil {
				err = k.Own.Signal(syscall.SIGKILL)
			}
			testworld.WaitOr(w, func() bool { return k.Own.Gone() && w.status("agent1").Pane() == "" }, func() string { return "the keeper lives" })
			w.down(spawn.DownOptions{Force: true})
		}
		testworld.Must(t, err)
		list := w.l.Unproved()
		if len(list) != 1 || list[0].Earlier {
			t.Fatalf("unproved: %+v, want the last start", list)
		}
		if suspects, err := w.l.Suspects(list); err != nil || !slices.Contains(suspects, young) {
			t.Errorf("suspects %v, %v; want all that is young enough, and so %v", suspects, err, young)
		}
		if err := w.l.TakeWord(w.ctx, list, agent.Owner); err != nil || len(w.unproved()) != 0 {
			t.Errorf("after the word: %v, %v", w.unproved(), err)
		}
	}
	w.upReady(demo{}, "agent1")
	testworld.EqualList(t, w.unproved(), nil, "after a later up")
}

// How an agent ended whose keeper was killed is noted, once, and of its last start
// alone.
func TestNoteLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(demo{}, "agent1")
	k := testworld.Got(w.home.LoadKeeper("agent1"))(t)
	if k.Above.Space == "" || len(k.Above.Ancestors) == 0 {
		t.Errorf("the keeper's record names no lineage: %+v", k)
	}
	if noted, err := w.l.NoteLost("agent1", k.Start); noted || err != nil {
		t.Errorf("of one that runs: %v, %v", noted, err)
	}
	testworld.Must(t, k.Own.Signal(syscall.SIGKILL))
	st := w.becomes("agent1", agent.Dead)
	if !st.Lost || st.PID != k.PID || !strings.HasSuffix(st.Evidence, ", and its keeper was killed") || !st.Since.IsZero() {
		t.Errorf("before it is noted: %+v", st)
	}
	if noted, err := w.l.NoteLost("agent1", "another"); noted || err != nil {
		t.Errorf("of another start: %v, %v", noted, err)
	}
	lock := testworld.Got(w.home.Lock("up"))(t)
	if noted, err := w.l.NoteLost("agent1", k.Start); noted || !errors.Is(err, home.ErrLocked) {
		t.Errorf("while an up is at work: %v, %v", noted, err)
	}
	testworld.Must(t, lock.Unlock())
	if noted, err := w.l.NoteLost("agent1", k.Start); !noted || err != nil {
		t.Errorf("not noted: %v", err)
	}
	st = w.status("agent1")
	if st.State != agent.Dead || st.Lost || st.Detail != "its keeper was killed" || st.Since.IsZero() || st.PID != k.PID {
		t.Errorf("after it is noted: %+v", st)
	}
	if end, log := w.l.Death(w.ctx, st); end.Reason != "died: its keeper was killed" || log.Text != "died: its keeper was killed" || end.Time == 0 {
		t.Errorf("death: %+v, %+v", end, log)
	}
	if noted, err := w.l.NoteLost("agent1", k.Start); noted || err != nil {
		t.Errorf("a second time: %v, %v", noted, err)
	}
}

// A launch without a keeper's record, or with one that nobody can read, proves nothing,
// unless tmux has made no session for it.
func TestUnprovedWithoutRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(demo{}, "agent1")
	w.down(spawn.DownOptions{Force: true})
	testworld.EqualList(t, w.unproved(), nil, "unproved")
	record := w.home.Path(home.KeeperDir, "agent1.json")
	testworld.Must(t, os.WriteFile(record, []byte(`{"start":`), 0o600))
	testworld.EqualList(t, w.unproved(), []string{"agent1"}, "with a record that nobody can read")
	testworld.Must(t, os.Remove(record))
	testworld.EqualList(t, w.unproved(), []string{"agent1"}, "without one")
	w.upReady(demo{}, "agent1")
	w.down(spawn.DownOptions{Force: true})
	testworld.EqualList(t, w.unproved(), []string{"agent1"}, "after another start")
	blind := launcherAt(w.home, w.socket, []string{"PATH=/nowhere"})
	if _, err := blind.Up(w.ctx, spawn.UpOptions{Plans: w.plans(demo{}, "agent2")}); err == nil {
		t.Fatal("up without tmux")
	}
	testworld.EqualList(t, w.unproved(), []string{"agent1"}, "with one that never ran")
}

// Without tmux agents are ended by their processes, and that tmux could not be
// asked stays an error.
func TestDownWithoutTmux(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	plans := w.plans(stays(), "agent0", "agent1", "agentinfinity")
	testworld.Got(w.l.Up(w.ctx, spawn.UpOptions{Plans: plans, Ticker: true}))(t)
	ticker := w.ticker()
	keepers := w.keepers("agent0", "agent1", "agentinfinity")
	blind := launcherAt(w.home, w.socket, []string{"PATH=/nowhere"})
	if list, err := blind.Remnants(w.ctx); err == nil || len(list) < 7 {
		t.Errorf("remnants: %s, %v; want three keepers, their programs, the ticker, and an error", remnants(list), err)
	}
	log, err := blind.Down(w.ctx, spawn.DownOptions{All: true, Force: true})
	testworld.Fails(t, err, "", "no word of tmux")
	for _, name := range []string{"agent0", "agent1", "agentinfinity", "netsky-ticker"} {
		testworld.Equal(t, steps(log)[name], "ended", "%s", name)
	}
	for _, k := range keepers {
		w.gone(k.Own, "a keeper")
		w.gone(k.Process, "a program")
	}
	w.gone(ticker, "the ticker")
	if list, err := blind.Remnants(w.ctx); err == nil || len(list) != 0 {
		t.Errorf("remnants: %s, %v; want none, and an error", remnants(list), err)
	}
	testworld.WaitOr(w, func() bool { return w.sessions() == "" }, func() string { return "sessions: " + w.sessions() })
}

// After another socket has been configured, what runs on the old server is found
// and ended, and nothing starts beside it.
func TestDownAfterSocketChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	plans := w.plans(demo{}, "agent0", "agent1")
	testworld.Got(w.l.Up(w.ctx, spawn.UpOptions{Plans: plans, Ticker: true}))(t)
	ticker := w.ticker()
	keepers := w.keepers("agent0", "agent1")
	moved := launcherAt(w.home, w.socket+"2", w.l.Environ)
	t.Cleanup(func() { _ = moved.Tmux.Stop(w.ctx) })
	list, err := moved.Inspect(w.ctx)
	if st := list.Find("agent1"); err != nil || st.State != agent.Unknown || !strings.Contains(st.Evidence, w.socket) {
		t.Errorf("agent1: %+v, %v; want where it runs", st, err)
	}
	if left, err := moved.Remnants(w.ctx); err != nil || !strings.HasPrefix(remnants(left), "tmux session agent0, tmux session agent1, tmux session netsky-ticker") {
		t.Errorf("remnants: %s, %v", remnants(left), err)
	}
	log, err := moved.Down(w.ctx, spawn.DownOptions{All: true})
	testworld.Equal(t, err, nil)
	if got := steps(log); got["agent1"] != "asked acked ended" || got["netsky-ticker"] != "ended" {
		t.Errorf("down: %v", got)
	}
	for _, k := range keepers {
		w.gone(k.Own, "a keeper")
	}
	w.gone(ticker, "the ticker")
	if left, err := moved.Remnants(w.ctx); err != nil || len(left) != 0 {
		t.Errorf("remnants: %s, %v", remnants(left), err)
	}
	testworld.Equal(t, remnants(moved.Unproved()), "", "unproved")
	if _, err := w.l.Tmux.Panes(w.ctx); err != nil && !errors.Is(err, tmux.ErrNoServer) {
		t.Error(err)
	}
}

// ticker waits until the ticker has said who it is.
func (w *world) ticker() (p proc.Process) {
	w.Helper()
	testworld.WaitOr(w, func() bool { t, err := w.home.LoadTicker(); p = t.Process; return err == nil && p.Alive() },
		func() string { return "no ticker" })
	return p
}

func (w *world) keepers(names ...string) (list []agent.Keeper) {
	w.Helper()
	for _, name := range names {
		var k agent.Keeper
		testworld.WaitOr(w, func() bool {
			var err error
			k, err = w.home.LoadKeeper(agent.ID(name))
			return err == nil && k.Own.Alive() && k.Alive()
		}, func() string { return name + ": no keeper" })
		list = append(list, k)
	}
	return list
}

// A home where nothing was started is clean, whatever it has for mailboxes.
func TestNothingStartedIsProved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range ids("agent0", "agent1", "owner") {
		testworld.Must(t, w.bus.Make(id))
	}
	w.down(spawn.DownOptions{All: true, Force: true})
	testworld.Equal(t, remnants(w.l.Unproved()), "", "unproved")
	if list, err := w.l.Remnants(w.ctx); err != nil || len(list) != 0 {
		t.Errorf("remnants: %s, %v", remnants(list), err)
	}
}

// A full disk takes no proof away: the record that is there is written over.
func TestDownOnFullDiskIsProved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=4m,mode=700"); err != nil {
		t.Logf("no mounts here: %v", err)
		return
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	h := testworld.Got(home.At(filepath.Join(dir, "h")))(t)
	testworld.Got(h.Make())(t)
	short := filepath.Dir(testworld.FastHome(t).Root()) // for the socket
	w := newWorldAt(t, h, filepath.Join(short, "s"))
	w.upReady(demo{}, "agent1", "agent2")
	w.l.Journal.Close()
	f := testworld.Got(os.Create(filepath.Join(dir, "fill")))(t)
	defer f.Close()
	for size := 1 << 16; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, unix.ENOSPC) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
	log, err := w.l.Down(w.ctx, spawn.DownOptions{Force: true})
	if got := steps(log); got["agent1"] != "ended" || got["agent2"] != "ended" {
		t.Errorf("down: %v", got)
	}
	if !errors.Is(err, unix.ENOSPC) { // they are still wanted up
		t.Errorf("down: %v, want what could not be written", err)
	}
	later := launcherAt(w.home, w.socket, w.l.Environ)
	testworld.Equal(t, remnants(later.Unproved()), "", "unproved in a later run")
}

// What is proved and can't be recorded counts in this run, and is said: a later
// one can't know it.
func TestDownUnrecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(demo{}, "agent1")
	dir := w.home.Path(home.KeeperDir)
	err := unix.Mount(dir, dir, "", unix.MS_BIND, "")
	if err == nil {
		t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
		err = unix.Mount("none", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
	}
	if err != nil {
		t.Logf("no mounts here: %v", err)
		return
	}
	_, err = w.l.Down(w.ctx, spawn.DownOptions{Force: true})
	if !errors.Is(err, unix.EROFS) || !strings.Contains(err.Error(), "agent1: ended with nothing left running, but that could not be recorded") {
		t.Errorf("down: %v", err)
	}
	testworld.EqualList(t, w.unproved(), nil, "unproved in this run")
	later := launcherAt(w.home, w.socket, w.l.Environ)
	if list := later.Unproved(); len(list) != 1 || !strings.Contains(list[0].What, "could not record") {
		t.Errorf("in a later run: %s", remnants(list))
	}
}
