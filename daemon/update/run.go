// Package update puts another build of netsky in the place of the one that is installed, and proves that it
// operates before it stays.
//
// An update is a [Run]: a file of the home, written before each step. Whoever prepares one builds and checks a program
// beside the installed one, and changes nothing else. From then on a [Supervisor] has it: a process of its own that runs
// the old program, ends the daemon, copies the records, exchanges the program by a rename, starts the daemon and watches
// it. If that does not operate, everything goes back.
//
// A crash at any step leaves a whole program under its name, the old one or the new one, and the run. Whoever starts the
// daemon next, a verb or the ticker, finds the run and has another supervisor finish it, or undo it ([Finish]). The
// messages are files of the home and are not touched.
package update

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/store"
)

// A Kind is what a run is for.
type Kind string

// The kinds of runs.
const (
	Update   Kind = "update"
	Rollback Kind = "rollback" // to the program that was kept
	Restart  Kind = "restart"  // of the daemon, as the program that is installed
)

// A State is how far a run is.
type State string

// The states of a run, in their order.
const (
	Preparing  State = "preparing"  // nothing is changed
	Prepared   State = "prepared"   // from here on a supervisor has it
	Stopping   State = "stopping"   // the daemon is ended
	Copying    State = "copying"    // the records are
	Installing State = "installing" // the program is exchanged
	Starting   State = "starting"   // the daemon is started and watched
	Undoing    State = "undoing"    // program and records go back, and the old daemon is started
	Done       State = "done"
	Undone     State = "undone" // the old program runs
	Failed     State = "failed" // nothing was changed, or Why says what could not be undone
)

// Over reports whether nothing more happens in the run.
func (s State) Over() bool { return s == Done || s == Undone || s == Failed }

// A Build is one build of netsky.
type Build struct {
	Version string `json:"version"`
	SHA256  string `json:"sha256,omitempty"` // of its program
	Schema  int    `json:"schema,omitempty"` // of the records, as it knows them
}

// A Step is one state that a run was in.
type Step struct {
	Name     string   `json:"name"` // its state, or what is done to prepare the run
	Commands []string `json:"commands,omitempty"`
	Note     string   `json:"note,omitempty"` // what it found
	Error    string   `json:"error,omitempty"`
	AtMS     int64    `json:"at_ms"`
	EndedMS  int64    `json:"ended_ms,omitempty"`
}

// A Run is one update. The zero values of what does not concern its kind are left out of its file.
type Run struct {
	ID         string   `json:"id"`
	Kind       Kind     `json:"kind"`
	State      State    `json:"state"`
	Binary     string   `json:"binary"`             // the program's path, which stays the same
	Staged     string   `json:"staged,omitempty"`   // the new program, beside it
	Scratch    string   `json:"scratch,omitempty"`  // the directory that its preparation needed
	Previous   string   `json:"previous,omitempty"` // the old one, under a second name; "" once it is in its place again
	From       Build    `json:"from"`
	To         Build    `json:"to"`
	Repository string   `json:"repository,omitempty"` // where the new program is from: a checkout or an archive
	Revision   string   `json:"revision,omitempty"`   // of the checkout
	Adopts     bool     `json:"adopts,omitempty"`     // the checkout is moved to that revision once it operates
	Backup     string   `json:"backup,omitempty"`     // the copy of the records, below the home
	Schema     int      `json:"schema,omitempty"`     // of that copy
	Restore    string   `json:"restore,omitempty"`    // the copy that is put back with the program, below the home
	Aside      string   `json:"aside,omitempty"`      // the records that were taken back, below the home
	Idle       bool     `json:"idle,omitempty"`       // the daemon is not wanted: it is not started
	Receiver   bool     `json:"receiver,omitempty"`   // agent0's mail was being received before
	Attempts   int      `json:"attempts,omitempty"`   // how often its daemon was started
	Changes    string   `json:"changes,omitempty"`    // what the new version changes for its user
	Why        string   `json:"why,omitempty"`        // it was undone, failed, or is done without the checkout following
	By         agent.ID `json:"by"`
	Steps      []Step   `json:"steps"`
	StoppedMS  int64    `json:"stopped_ms,omitempty"` // when the old daemon was asked to end,
	AnswersMS  int64    `json:"answers_ms,omitempty"` // and the new one answered
}

const (
	// Dir is where the run and the copy of the records are, below the home.
	Dir     = "state/self"
	runFile = Dir + "/run.json"
	// idPrefix is what the names of runs begin with, and of their files.
	idPrefix = "self-"
	// keptFile is the run to which the kept program and the copy of the records belong.
	keptFile = Dir + "/installed.json"
)

// The records' copy, what was there before a rollback put another copy back, and what was there before that was undone.
func (r Run) copyFile() string   { return Dir + "/" + r.ID + ".db" }
func (r Run) asideFile() string  { return Dir + "/" + r.ID + "-aside.db" }
func (r Run) undoneFile() string { return Dir + "/" + r.ID + "-undone.db" }

// Load returns the last run of a home; its error matches fs.ErrNotExist if there was none.
func Load(h home.Dir) (Run, error) { return load(h, runFile) }

// Installed returns the update or rollback that has put the present program in its place; its error matches fs.ErrNotExist if
// none has.
func Installed(h home.Dir) (Run, error) { return load(h, keptFile) }

// Pending returns the run that a supervisor has, or should have.
func Pending(h home.Dir) (Run, bool) {
	r, err := Load(h)
	return r, err == nil && !r.State.Over() && r.State != Preparing
}

// ErrBusy is returned while another process prepares or carries out a run.
var ErrBusy = advice.With(errors.New("another update or restart of the daemon is in progress"), "`netsky self status` shows it")

// Begin begins a run, as long as nobody else does one, here or for the same program in another home. Whoever has it
// calls Abandon or HandOver. A run that was cut off while it was prepared is cleared away; one that has got further has
// to be finished first: that is ErrUnfinished.
func Begin(h home.Dir, r Run) (*Draft, error) {
	lock, err := h.Lock(home.SelfLock)
	if errors.Is(err, home.ErrLocked) {
		return nil, fmt.Errorf("%w (%w)", ErrBusy, err)
	} else if err != nil {
		return nil, err
	}
	d := &Draft{Run: r, home: h, lock: lock, journal: store.NewJournal(h)}
	err = d.begin()
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// ErrUnfinished is returned if a run was cut off.
var ErrUnfinished = advice.With(errors.New("an update or a restart of the daemon was cut off, and has to be finished first"),
	"`netsky up` or `netsky daemon restart` finishes it; `netsky self status` shows it")

func (d *Draft) begin() error {
	last, err := Load(d.home)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return advice.With(err, "`rm %s` if no update is running; the program stays as it is", advice.Word(d.home.Path(runFile)))
	case !last.State.Over() && last.State != Preparing:
		return ErrUnfinished
	default:
		if err := last.unstage(); err != nil {
			return err
		}
	}
	if d.program, err = d.Run.lockProgram(); err != nil {
		return err
	}
	now := time.Now()
	d.Run.ID = fmt.Sprintf(idPrefix+"%d", now.UnixMilli())
	return d.Enter(context.Background(), "preflight")
}

func (r *Run) save(h home.Dir) error { return h.Save(runFile, r, true) }

// enter ends the last step, begins the next, and stores that.
func (r *Run) enter(h home.Dir, s State, name string, commands ...string) error {
	now := time.Now().UnixMilli()
	if n := len(r.Steps); n > 0 && r.Steps[n-1].EndedMS == 0 {
		r.Steps[n-1].EndedMS = now
	}
	r.State = s
	r.Steps = append(r.Steps, Step{Name: name, Commands: commands, AtMS: now})
	if s.Over() {
		r.step().EndedMS = now
		if s == Failed {
			r.step().Error = r.Why
		}
	}
	return r.save(h)
}

// step returns the one that the run is in.
func (r *Run) step() *Step { return &r.Steps[len(r.Steps)-1] }

// Hint says how the run is taken back by hand, "" if there is nothing to take back.
func (r Run) Hint() string {
	if r.Previous == "" || r.Kind == Restart {
		return ""
	}
	return "netsky self rollback"
}

// record returns the rows of the run: one for each step, so that recording them again changes nothing.
func (r Run) record() (ops []store.Op) {
	for n, s := range r.Steps {
		u := store.UpsertUpdate{
			Backup: r.Backup,
			ID:     fmt.Sprintf("%s.%02d", r.ID, n+1), State: s.Name, Repository: r.Repository, Revision: r.Revision, Commands: s.Commands,
			RollbackHint: r.Hint(), Error: s.Error, Started: store.Time(s.AtMS), Updated: store.Time(max(s.AtMS, s.EndedMS)), Ended: store.Time(s.EndedMS),
		}
		if u.Revision == "" {
			u.Revision = r.To.Version
		}
		ops = append(ops, u)
	}
	return ops
}
