package update_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/daemon"
	"netsky/daemon/update"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/testworld"
)

// restart is a run that needs no other program.
func (w *world) restart() update.Run {
	return update.Run{Kind: update.Restart, Binary: w.bin, To: update.Build{Version: "v1"}}
}

// Only one run at a time is prepared or carried out, in a home and for a program.
func TestBusy(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t), newWorld(t)
	d := testworld.Got(update.Begin(w.home, w.restart()))(t)
	testworld.ErrorIs(t, testworld.Err(update.Begin(w.home, w.restart())), update.ErrBusy, "a second one of a home")
	testworld.Must(t, testworld.Got(update.Begin(other.home, w.restart()))(t).Abandon(t.Context(), errors.New("no reason"))) // it exchanges nothing
	testworld.Must(t, d.Abandon(t.Context(), errors.New("no reason")))
	r := testworld.Got(update.Load(w.home))(t)
	testworld.Equal(t, string(r.State)+" "+r.Why, "failed no reason")

	w.prepare(update.Update, "v2", "", nil)
	testworld.ErrorIs(t, testworld.Err(update.Begin(w.home, w.restart())), update.ErrUnfinished, "while one waits for a supervisor")
	w.set.Hold = "started"
	testworld.Must(t, update.Finish(w.home, w.environ()))
	who := w.held()
	testworld.ErrorIs(t, testworld.Err(update.Begin(w.home, w.restart())), update.ErrBusy, "while a supervisor has it")
	again := w.restart()
	again.Kind = update.Rollback
	testworld.ErrorIs(t, testworld.Err(update.Begin(other.home, again)), update.ErrBusy, "another home's of the same program")
	proc.End(w.ctx, []proc.Process{who}, 0)
	testworld.ErrorIs(t, testworld.Err(update.Begin(w.home, w.restart())), update.ErrUnfinished, "after that was killed")
	w.set.Hold = ""
	w.start()
	testworld.Equal(t, w.over().State, update.Done)
	w.whole("v2", "netsky.previous")
}

// held waits until the supervisor is at the step at which it is held, and returns it.
func (w *world) held() (p proc.Process) {
	w.Helper()
	testworld.WaitOr(w, func() bool {
		who, ok := w.home.LockHolder(home.SelfLock)
		p = who.Process
		return ok && w.at(w.set.Hold)
	}, w.steps)
	return p
}

// What was staged by a run that was killed while it was prepared is removed by the next.
func TestPreparingKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.restart()
	r.ID, r.State, r.Staged = "self-1", update.Preparing, filepath.Join(filepath.Dir(w.bin), ".netsky-self-1")
	r.Steps = []update.Step{{Name: "build"}}
	r.Scratch = filepath.Join(t.TempDir(), ".self-1")
	testworld.Must(t, os.MkdirAll(filepath.Join(r.Scratch, "1", "netsky"), 0o700))
	testworld.Must(t, w.home.Save(update.Dir+"/run.json", r, false))
	w.program(r.Staged, "v2", "")
	w.start() // nothing is pending
	w.update("v3", "", update.Done)
	w.whole("v3", "netsky.previous")
	testworld.ErrorIs(t, testworld.Err(os.Lstat(r.Scratch)), fs.ErrNotExist, "what its preparation needed")
}

// A program whose supervisors are killed again and again is taken back: it may be what kills them.
func TestKilledAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.prepare(update.Update, "v2", "", nil)
	w.set.KillAt = "operates"
	for range 3 {
		if !w.supervise() {
			t.Fatal("not killed\n", w.steps())
		}
		testworld.Equal(t, testworld.Got(update.Load(w.home))(t).State, update.Starting)
	}
	w.set.KillAt = ""
	w.start()
	r := w.over()
	testworld.Equal(t, r.State, update.Undone, "%s", w.steps())
	testworld.Contains(t, r.Why, "ended 3 times")
	testworld.Len(t, w.whole("v1"), 1, "told")
}

// A new daemon that is killed while it is watched is taken back, and so is one that ends before.
func TestDaemonKilled(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"started", "operates"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.prepare(update.Update, "v2", "", nil)
			w.set.Wait, w.set.Watch = at, time.Second
			testworld.Must(t, update.Finish(w.home, w.environ()))
			testworld.WaitOr(t, func() bool { return w.at(at) }, w.steps)
			p := testworld.Got(daemon.Ping(w.ctx, w.home))(t)
			testworld.Equal(t, p.Version, "v2")
			testworld.Must(t, syscall.Kill(p.PID, syscall.SIGKILL))
			testworld.Must(t, os.WriteFile(w.set.Steps+".go", nil, 0o600))
			r := w.over()
			testworld.Equal(t, r.State, update.Undone, "%s", w.steps())
			testworld.Len(t, w.whole("v1"), 1, "told")
		})
	}
}

// While the daemon is not wanted, its supervisor ends, wherever it is, and nothing runs. The next start goes on with the run,
// unless that was being undone: then the old daemon is all that it lacks.
func TestLeave(t *testing.T) {
	t.Parallel()
	for at, fault := range map[string]string{
		"stopping": "", "copying": "", "installing": "", "starting": "", "started": "", "operates": "", "undoing": "migrate", "records back": "migrate",
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.prepare(update.Update, "v2", fault, nil)
			w.set.Wait, w.set.Watch = at, 10*time.Minute
			testworld.Must(t, update.Finish(w.home, w.environ()))
			testworld.WaitOr(t, func() bool { return w.at(at) }, w.steps)
			w.want(false)
			testworld.Must(t, os.WriteFile(w.set.Steps+".go", nil, 0o600))
			testworld.Must(t, update.Leave(w.ctx, w.home))
			testworld.Got(daemon.Stop(w.ctx, w.home))(t)
			w.nothing()
			if _, pending := update.Pending(w.home); pending != (fault == "") {
				t.Errorf("pending: %v", pending)
			}
			w.want(true)
			w.set.Wait, w.set.Watch = "", 100*time.Millisecond
			w.start()
			if r := w.over(); fault == "" {
				testworld.Equal(t, r.State, update.Done, "%s", w.steps())
				testworld.Len(t, w.whole("v2", "netsky.previous"), 1, "told")
			} else {
				testworld.Equal(t, r.State, update.Undone, "%s", w.steps())
				testworld.Len(t, w.whole("v1"), 1, "told")
			}
		})
	}
}

// One that does not notice is ended. Whoever prepares a run in a terminal is not.
func TestLeaveHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := testworld.Got(update.Begin(w.home, w.restart()))(t)
	testworld.Must(t, update.Leave(w.ctx, w.home))
	testworld.Must(t, d.Abandon(w.ctx, errors.New("no reason")))
	w.prepare(update.Update, "v2", "", nil)
	w.set.Hold = "copying"
	testworld.Must(t, update.Finish(w.home, w.environ()))
	who := w.held()
	w.want(false)
	testworld.Must(t, update.Leave(w.ctx, w.home))
	if who.Alive() {
		t.Error("it lives")
	}
	w.nothing()
}

// nothing requires that nothing of the home runs.
func (w *world) nothing() {
	w.Helper()
	testworld.Wait(w, "no process of its own", func() bool { // a supervisor releases its lock before it ends
		return len(testworld.Got(proc.Descendants(0, "NETSKY_HOME="+w.home.Root()))(w)) == 0
	})
}

// Where the daemon neither runs nor is wanted, it is not started.
func TestIdle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(false)
	testworld.Got(daemon.Stop(w.ctx, w.home))(t)
	d := testworld.Got(update.Begin(w.home, update.Run{Kind: update.Update, Binary: w.bin, Previous: update.Kept(w.bin), From: update.Build{Version: "v1", SHA256: w.sum(w.bin)}, Idle: true}))(t)
	d.Run.To = w.program(testworld.Got(d.Stage())(t), "v2", "crash")
	testworld.Got(d.HandOver(w.ctx))(t)
	w.supervise()
	testworld.Equal(t, w.over().State, update.Done, "%s", w.steps())
	testworld.Contains(t, string(testworld.Got(os.ReadFile(w.bin))(t)), "\nv2 ")
	w.nothing()
	if who, ok := w.home.LockHolder(agent.DaemonName); ok {
		t.Error(who)
	}
}

// Where the old program can't get a second name, nothing is begun.
func TestNoSecondName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := testworld.Got(update.Begin(w.home, update.Run{Kind: update.Update, Binary: w.bin, Previous: update.Kept(w.bin), From: update.Build{Version: "v1", SHA256: w.sum(w.bin)}}))(t)
	d.Run.To = w.program(testworld.Got(d.Stage())(t), "v2", "")
	old := filepath.Join(filepath.Dir(w.bin), ".netsky-"+d.Run.ID+"-old")
	testworld.Must(t, os.MkdirAll(filepath.Join(old, "x"), 0o700))
	r, err := d.HandOver(w.ctx)
	testworld.Fails(t, err, filepath.Base(old))
	testworld.Equal(t, r.State, update.Failed)
	testworld.Must(t, os.RemoveAll(old))
	testworld.Len(t, w.whole("v1"), 0, "told")
	w.update("v2", "", update.Done)
}

// On a full disk the records can't be copied, or not even the run be stored: the old daemon runs, and nothing was changed.
func TestFull(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set.Room = 1
	w.prepare(update.Update, "v2", "", nil)
	before := testworld.Got(daemon.Ping(w.ctx, w.home))(t)
	w.supervise()
	testworld.Equal(t, testworld.Got(daemon.Ping(w.ctx, w.home))(t), before, "the daemon")
	testworld.Equal(t, testworld.Got(update.Load(w.home))(t).State, update.Prepared)
	w.set.Room = 100_000
	w.supervise()
	r := w.over()
	testworld.Equal(t, r.State, update.Undone, "%s", w.steps())
	testworld.Contains(t, r.Why, "copy the records")
	testworld.Len(t, w.whole("v1"), 1, "told")
	w.set.Room = 0
	w.update("v2", "", update.Done)
}

// Whoever follows a run is told each step once and gets the run that is over; what ends sooner is who follows.
func TestFollow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set.Wait = "copying"
	r := w.prepare(update.Update, "v2", "crash", nil)
	testworld.Must(t, update.Finish(w.home, w.environ()))
	ctx, cancel := context.WithCancel(w.ctx)
	_, err := update.Follow(ctx, w.home, r.ID, func(_ update.Run, s update.Step) {
		if s.Name == string(update.Copying) {
			cancel()
		}
	})
	testworld.ErrorIs(t, err, update.ErrInterrupted)
	testworld.Must(t, os.WriteFile(w.set.Steps+".go", nil, 0o600))
	var names []string
	r, err = update.Follow(w.ctx, w.home, r.ID, func(_ update.Run, s update.Step) { names = append(names, s.Name) })
	testworld.Must(t, err)
	testworld.Equal(t, r.State, update.Undone)
	testworld.EqualList(t, names, []string{"preflight", "prepared", "stopping", "copying", "installing", "starting", "undoing", "undone"}, "steps")
	last := w.update("v2", "", update.Done)
	testworld.Fails(t, testworld.Err(update.Follow(w.ctx, w.home, r.ID, nil)), "another run has begun: "+last.ID)
}
