package update_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"netsky/daemon"
	"netsky/daemon/update"
	"netsky/home"
	"netsky/internal/testworld"
)

// What no netsky has stored is no run: no file that it names is touched, and the daemon starts without it.
func TestNoRun(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	dir := t.TempDir()
	theirs := filepath.Join(dir, "theirs")
	testworld.Must(t, os.WriteFile(theirs, []byte("theirs"), 0o700))
	binary := filepath.Join(dir, "netsky")
	testworld.Must(t, os.WriteFile(binary, []byte("netsky"), 0o700))
	sum := testworld.Got(update.Sum(binary))(t)
	for name, change := range map[string]func(*update.Run){
		"no steps":         func(r *update.Run) { r.Steps = nil },
		"kind":             func(r *update.Run) { r.Kind = "upgrade" },
		"state":            func(r *update.Run) { r.State = "" },
		"relative":         func(r *update.Run) { r.Binary = "netsky" },
		"not clean":        func(r *update.Run) { r.Binary = dir + "/x/../netsky" },
		"no digest":        func(r *update.Run) { r.From.SHA256 = "" },
		"id":               func(r *update.Run) { r.ID = "../../meta" },
		"no id":            func(r *update.Run) { r.ID = "" },
		"staged":           func(r *update.Run) { r.Staged = theirs },
		"staged elsewhere": func(r *update.Run) { r.Staged = "/tmp/.netsky-self-1" },
		"staged above":     func(r *update.Run) { r.Staged = dir + "/.netsky-self-1/../theirs" },
		"previous":         func(r *update.Run) { r.Previous = theirs },
		"restore":          func(r *update.Run) { r.Restore = "../theirs" },
		"backup":           func(r *update.Run) { r.Backup = "meta.db" },
		"aside":            func(r *update.Run) { r.Aside = update.Dir + "/run.json" },
	} {
		for _, state := range []update.State{update.Preparing, update.Installing, update.Undoing} {
			r := update.Run{
				ID: "self-1", Kind: update.Update, State: state, Binary: binary, Staged: dir + "/.netsky-self-1", Previous: update.Kept(binary),
				From: update.Build{SHA256: sum}, To: update.Build{SHA256: sum}, Steps: []update.Step{{Name: "preflight"}},
			}
			testworld.Must(t, h.Save(update.Dir+"/run.json", r, false))
			testworld.Must(t, testworld.Err(update.Load(h)), "as it is stored")
			if change(&r); name == "no digest" && state == update.Preparing {
				continue // they are not known yet
			}
			testworld.Must(t, h.Save(update.Dir+"/run.json", r, false))
			_, err := update.Load(h)
			testworld.Fails(t, err, h.Path(update.Dir, "run.json")+": ", "%s", name)
			_, pending := update.Pending(h)
			testworld.Equal(t, pending, false, "%s", name)
			testworld.Equal(t, update.Program(h, binary), binary, "%s", name)
			_, err = update.Begin(h, update.Run{Kind: update.Rollback, Binary: binary})
			testworld.Fails(t, err, "run.json: ", "%s", name)
			testworld.Must(t, testworld.Err(os.Stat(theirs)), "%s", name)
		}
	}
	testworld.Must(t, h.Save(update.Dir+"/installed.json", update.Run{ID: "../../meta"}, false))
	testworld.Fails(t, testworld.Err(update.Installed(h)), "is not the id of a run")
}

// A run of another machine, or of programs that are there no more, ends as soon as the daemon is started. No program is
// exchanged, and none is started that is not what the run says.
func TestCopiedHome(t *testing.T) {
	t.Parallel()
	gone := func(w *world, r *update.Run) {
		r.Binary = filepath.Join(w.home.Root(), "nowhere", "netsky")
		r.Staged, r.Previous = filepath.Join(filepath.Dir(r.Binary), ".netsky-"+r.ID), update.Kept(r.Binary)
	}
	others := func(w *world, r *update.Run) { r.From.SHA256, r.To.SHA256 = w.sum(w.set.Steps), w.sum(w.set.Steps) }
	for _, tt := range []struct {
		name  string
		state update.State
		spoil func(w *world, r *update.Run)
	}{
		{"gone", update.Prepared, gone},
		{"gone", update.Undoing, gone},
		{"others", update.Installing, others},
		{"others", update.Starting, others},
	} {
		t.Run(tt.name+" "+string(tt.state), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			testworld.Must(t, os.WriteFile(w.set.Steps, nil, 0o600))
			r := w.prepare(update.Update, "v2", "", nil)
			testworld.Must(t, os.Remove(r.Staged))
			testworld.Must(t, testworld.Err(daemon.Stop(w.ctx, w.home)))
			r.State, r.Why = tt.state, "cut off"
			tt.spoil(w, &r)
			testworld.Must(t, w.home.Save(update.Dir+"/run.json", r, false))
			testworld.Must(t, update.Finish(w.home, w.environ()))
			testworld.ErrorIs(t, testworld.Err(update.Starts(w.ctx, w.home)), daemon.ErrNotRunning)
			testworld.Equal(t, w.over().State, update.Failed)
			w.start()
			data := testworld.Got(os.ReadFile(w.bin))(t)
			testworld.Contains(t, string(data), "v1")
			testworld.Wait(t, "the owner to be told", func() bool { return len(w.mail()) == 1 })
		})
	}
}

// Nothing but a program of the user's or the system's is put in the place of another.
func TestOwned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link, fifo := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "fifo")
	testworld.Must(t, os.WriteFile(file, nil, 0o700))
	testworld.Must(t, os.Symlink(file, link))
	testworld.Must(t, syscall.Mkfifo(fifo, 0o700))
	testworld.Must(t, update.Owned(file))
	for _, name := range []string{dir, link, fifo} {
		testworld.Fails(t, update.Owned(name), name+": is not a regular file")
	}
	for _, name := range []string{dir, fifo} {
		testworld.Fails(t, testworld.Err(update.Sum(name)), name+": is not a regular file")
	}
	w := newWorld(t)
	r := w.prepare(update.Update, "v2", "", nil)
	elsewhere := filepath.Join(w.home.Root(), "staged")
	testworld.Must(t, os.Rename(r.Staged, elsewhere))
	testworld.Must(t, os.Symlink(elsewhere, r.Staged))
	testworld.Must(t, update.Finish(w.home, w.environ()))
	r = w.over()
	testworld.Equal(t, r.State, update.Failed)
	testworld.Contains(t, r.Why, "is not a regular file")
	w.whole("v1")
}

// Of a daemon that is not wanted, but that somebody runs by hand, only the program is exchanged. One that has become wanted
// while the run was prepared is started.
func TestUnwanted(t *testing.T) {
	t.Parallel()
	for _, wanted := range []bool{false, true} {
		w := newWorld(t)
		w.want(false)
		w.prepare(update.Update, "v2", "", nil)
		w.want(wanted)
		testworld.Must(t, update.Finish(w.home, w.environ()))
		testworld.Equal(t, w.over().State, update.Done, "%s", w.steps())
		_, err := daemon.Ping(w.ctx, w.home)
		testworld.Equal(t, errors.Is(err, daemon.ErrNotRunning), !wanted, "%v", err)
		w.want(true)
		w.start()
		w.whole("v2", "netsky.previous")
	}
}

// A supervisor that hangs is ended by the next start of the daemon, and another one goes on where it was.
func TestSupervisorHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.prepare(update.Update, "v2", "", nil)
	w.set.Hold = string(update.Installing)
	testworld.Must(t, update.Finish(w.home, w.environ()))
	var r update.Run
	testworld.Wait(t, "the supervisor to hang", func() bool {
		r = testworld.Got(update.Load(w.home))(t)
		return r.State == update.Installing
	})
	w.set.Hold = ""
	who, _ := w.home.LockHolder(home.SelfLock)
	testworld.Must(t, update.Finish(w.home, w.environ()))
	testworld.Equal(t, who.Alive(), true, "it was ended in time")
	r.Steps[len(r.Steps)-1].AtMS -= time.Hour.Milliseconds()
	testworld.Must(t, w.home.Save(update.Dir+"/run.json", r, false))
	testworld.Must(t, update.Finish(w.home, w.environ()))
	testworld.Equal(t, w.over().State, update.Done, "%s", w.steps())
	testworld.Equal(t, who.Alive(), false)
	w.whole("v2", "netsky.previous")
}

// Of two homes that share a program, the second is told that it is another home that is at work.
func TestSharedProgram(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "netsky")
	testworld.Must(t, os.WriteFile(binary, nil, 0o700))
	d := testworld.Got(update.Begin(testworld.FastHome(t), update.Run{Kind: update.Update, Binary: binary}))(t)
	_, err := update.Begin(testworld.FastHome(t), update.Run{Kind: update.Rollback, Binary: binary})
	testworld.ErrorIs(t, err, update.ErrBusy)
	testworld.Fails(t, err, binary+": another update or restart of the daemon is in progress, by another home that shares it")
	testworld.Must(t, d.Abandon(t.Context(), err))
}
