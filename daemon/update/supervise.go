package update

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/daemon"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/words"
	"netsky/store"
)

// A Supervisor carries out the run of a home, whatever becomes of whoever has asked for it.
type Supervisor struct {
	Home    home.Dir
	Bus     *bus.Bus
	Environ []string // of the daemon
	// Escalate reaches the owner when no daemon could be brought to operate; nil: there is no way.
	Escalate func(ctx context.Context, subject, body string) (by string, err error)
	// Adopt makes what is installed last, as a checkout that follows its program; may be nil. An error is on record.
	Adopt  func(ctx context.Context, r Run) error
	Within time.Duration // in which a daemon must operate; 0: 30 s
	Watch  time.Duration // for which it must go on to; 0: 10 s
	Memory int64         // that it may occupy, in bytes; 0: 512 MiB

	run     Run
	spooled int // how many records waited for the daemon
	journal *store.Journal
}

const (
	within    = 30 * time.Second
	watched   = 10 * time.Second
	maxMemory = 512 << 20
	attempts  = 3 // starts of a new program's daemon: after that, it is what ended the supervisors
)

// errLeft ends a supervisor whose daemon is not wanted any more; the next start of the daemon goes on.
var errLeft = errors.New("the daemon was stopped meanwhile; its next start goes on with this")

// step is called between two durable steps, for tests that end the process there.
var step = func(name string) {}

// Supervise carries out the pending run of the home, and returns it. It is no error if there is none, or if another
// supervisor has it.
func (s *Supervisor) Supervise(ctx context.Context) (Run, error) {
	lock, err := s.Home.Lock(home.SelfLock)
	if errors.Is(err, home.ErrLocked) {
		return Run{}, nil
	} else if err != nil {
		return Run{}, err
	}
	defer lock.Unlock()
	var pending bool
	if s.run, pending = Pending(s.Home); !pending {
		return s.run, nil
	}
	program, err := s.run.lockProgram()
	if err == nil {
		defer program.Close()
	} else if !errors.Is(err, fs.ErrNotExist) { // else there is nothing to lock, and nothing that can be exchanged
		return s.run, err
	}
	s.journal = store.NewJournal(s.Home)
	defer s.journal.Close()
	s.Within, s.Watch, s.Memory = cmp.Or(s.Within, within), cmp.Or(s.Watch, watched), cmp.Or(s.Memory, maxMemory)
	switch err = s.forward(ctx); {
	case err == nil:
		err = s.finish(ctx, Done, nil)
	case errors.Is(err, errLeft):
	case ctx.Err() != nil: // told to end
		err = ctx.Err()
	default:
		err = s.undo(ctx, err)
	}
	return s.run, err
}

// forward brings the run from where it is to its end, or returns why it has to be undone.
func (s *Supervisor) forward(ctx context.Context) error {
	if s.run.State == Undoing {
		return errors.New(s.run.Why)
	}
	if s.run.State != Starting {
		if err := s.exchange(ctx); err != nil {
			return err
		}
	} else if s.run.Kind != Restart && !s.run.To.is(s.run.Binary) {
		if s.run.From.is(s.run.Binary) { // as on a full disk
			return errors.New("it had been taken back already, and why could not be stored")
		}
		return fmt.Errorf("%s: somebody else has replaced it", s.run.Binary)
	}
	if s.run.Idle {
		return nil
	}
	if s.run.Attempts++; s.run.Attempts > attempts {
		return fmt.Errorf("whoever watched it was ended %d times", attempts)
	}
	if err := s.enter(Starting, s.run.Binary+" daemon run"); err != nil {
		return err
	}
	return s.start(ctx, s.run.To)
}

// exchange ends the daemon, copies the records and puts the new program in the place of the old one.
func (s *Supervisor) exchange(ctx context.Context) error {
	there, err := s.installed() // before the daemon is away
	if err != nil {
		return err
	}
	s.run.Idle = s.idle(ctx)
	s.run.StoppedMS = time.Now().UnixMilli()
	s.run.Receiver = s.run.Receiver || s.receiver()
	if err := s.enter(Stopping); err != nil {
		return err
	}
	if _, err := daemon.Stop(ctx, s.Home); err != nil {
		return err
	}
	if s.run.Kind == Restart {
		return nil
	}
	if !there { // else the copy was made before, and the records may be others since
		if err := s.enter(Copying); err != nil {
			return err
		}
		if err := s.copyRecords(ctx); err != nil {
			return err
		}
	}
	if err := s.enter(Installing, "mv "+s.run.Staged+" "+s.run.Binary); err != nil {
		return err
	}
	if !there {
		step("install")
		err = place(s.run.Staged, s.run.Binary)
	}
	if err != nil || s.run.Restore == "" {
		return err
	}
	step("installed")
	s.run.Aside = s.run.asideFile()
	return store.Restore(ctx, s.Home, s.run.Restore, s.run.Aside)
}

func (s *Supervisor) copyRecords(ctx context.Context) error {
	c, err := store.Backup(ctx, s.Home, s.run.copyFile())
	if errors.Is(err, fs.ErrNotExist) { // there are no records yet
		return nil
	}
	if err != nil {
		return fmt.Errorf("copy the records: %w", err)
	}
	s.run.Backup, s.run.Schema = s.run.copyFile(), c.Schema
	s.run.step().Note = fmt.Sprintf("%s in %v", words.Size(c.Bytes), c.Took.Round(time.Millisecond))
	return nil
}

// installed reports whether the new program is in its place already. Else the old one is there, and what was checked beside it.
func (s *Supervisor) installed() (bool, error) {
	if s.run.Kind == Restart {
		return true, nil
	}
	now, err := Sum(s.run.Binary)
	switch {
	case err != nil:
		return false, err
	case now == s.run.To.SHA256:
		return true, nil
	case now != s.run.From.SHA256:
		return false, fmt.Errorf("%s: somebody else has replaced it", s.run.Binary)
	}
	staged, err := Sum(s.run.Staged)
	if err = cmp.Or(err, Owned(s.run.Staged)); err == nil && staged != s.run.To.SHA256 {
		err = fmt.Errorf("%s: is not what was checked", s.run.Staged)
	}
	return false, err
}

// start starts the daemon of a build and watches whether it operates.
func (s *Supervisor) start(ctx context.Context, b Build) error {
	if _, err := daemon.Stop(ctx, s.Home); err != nil { // whose, is not known here
		return err
	}
	step("start")
	if waiting, err := store.SpoolSize(s.Home); err == nil {
		s.spooled = waiting.Files
	}
	ctx, cancel := context.WithTimeout(ctx, s.Within)
	defer cancel()
	pong, _, err := daemon.Start(ctx, s.Home, []string{s.run.Binary, "daemon", "run", "--wanted"}, s.Environ)
	if errors.Is(err, daemon.ErrUnwanted) {
		return errLeft
	}
	if err != nil {
		return err
	}
	if s.run.AnswersMS == 0 {
		s.run.AnswersMS = time.Now().UnixMilli()
	}
	step("started")
	return s.judge(ctx, pong, b)
}

// undo puts back what there was before, and reports why.
func (s *Supervisor) undo(ctx context.Context, why error) error {
	ctx = context.WithoutCancel(ctx)
	s.run.Why = why.Error()
	if s.run.Kind == Restart || s.run.State == Prepared { // nothing is changed
		return s.finish(ctx, Failed, nil)
	}
	if s.run.State != Undoing {
		s.run.step().Error = s.run.Why
	}
	full := s.enter(Undoing) // on a full disk it is undone all the same, and once more by the next supervisor
	_, err := daemon.Stop(ctx, s.Home)
	if err == nil {
		err = s.putBack(ctx)
	}
	if err != nil {
		return errors.Join(full, s.finish(ctx, Failed, fmt.Errorf("and could not be undone: %w", err)))
	}
	if s.run.Idle {
		return errors.Join(full, s.finish(ctx, Undone, nil))
	}
	s.run.AnswersMS = 0
	switch err := s.start(ctx, s.run.From); {
	case errors.Is(err, errLeft): // it is the old one that starts next
	case err != nil:
		return s.finish(ctx, Failed, fmt.Errorf("the old program is back, but does not operate either: %w", err))
	}
	return errors.Join(full, s.finish(ctx, Undone, nil))
}

// putBack puts the old program in its place again, and the records if the new one has changed their tables or damaged
// them. Done twice, it changes nothing.
func (s *Supervisor) putBack(ctx context.Context) error {
	now, err := Sum(s.run.Binary)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if now != s.run.From.SHA256 {
		if now != "" && now != s.run.To.SHA256 {
			return fmt.Errorf("%s: somebody else has replaced it meanwhile", s.run.Binary)
		}
		if !s.run.From.is(s.run.Previous) {
			return fmt.Errorf("%s: is not the program that was kept", s.run.Previous)
		}
		step("put back")
		if err := s.run.keep(s.run.Previous, s.run.Binary); err != nil {
			return err
		}
	}
	step("program back")
	if s.run.Backup == "" || !s.spoiled(ctx) {
		if s.run.Aside == s.run.asideFile() {
			s.run.Aside = "" // these records, or a copy of them, are the present ones
		}
		return nil
	}
	s.run.Aside = s.run.undoneFile()
	if err := s.run.save(s.Home); err != nil {
		return err
	}
	if err := store.Restore(ctx, s.Home, s.run.Backup, s.run.Aside); err != nil {
		return err
	}
	step("records back")
	return nil
}

// spoiled reports whether the records are not what the old program left.
func (s *Supervisor) spoiled(ctx context.Context) bool {
	schema, err := store.SchemaOf(ctx, s.Home)
	if err != nil || schema != s.run.Schema {
		return true
	}
	db, err := store.OpenRead(ctx, s.Home)
	if err != nil {
		return store.Damaged(err)
	}
	defer db.Close()
	return store.Damaged(db.QuickCheck(ctx))
}

func (s *Supervisor) enter(state State, commands ...string) error {
	step("before " + string(state))
	if err := s.run.enter(s.Home, state, string(state), commands...); err != nil {
		return err
	}
	step(string(state))
	return nil
}

// finish ends the run, records it and tells the owner. more is what could not be done.
func (s *Supervisor) finish(ctx context.Context, state State, more error) error {
	ctx = context.WithoutCancel(ctx)
	if more != nil {
		s.run.Why += "; " + more.Error()
	}
	if state == Done && s.Adopt != nil {
		if err := s.Adopt(ctx, s.run); err != nil {
			s.run.Why = "its checkout was not moved to it: " + err.Error()
			s.run.step().Error = s.run.Why
		}
	}
	// Before it is over: of a supervisor that ends here the next one tells under the same id.
	told := s.tell(ctx, state)
	step("told")
	err := s.settle()
	step("settled")
	if state == Done && s.run.Kind != Restart {
		err = errors.Join(err, s.Home.Save(keptFile, s.run, true))
	}
	err = errors.Join(err, s.run.enter(s.Home, state, string(state)))
	if s.run.Kind != Restart {
		err = errors.Join(err, s.run.tidy(s.Home))
	}
	s.journal.Record(ctx, s.run.record()...)
	step("over")
	if state == Done {
		return errors.Join(err, told)
	}
	return errors.Join(errors.New(s.run.Why), err, told)
}

// idle reports whether no daemon is to run afterwards: it is not wanted, also if somebody runs one by hand. It may have become
// wanted while the run was prepared.
func (s *Supervisor) idle(ctx context.Context) bool {
	if _, err := home.Desired(s.Home).Load(agent.DaemonName); errors.Is(err, fs.ErrNotExist) { // it was never started by a verb
		_, err := daemon.Ping(ctx, s.Home)
		return errors.Is(err, daemon.ErrNotRunning)
	}
	return s.unwanted()
}

// unwanted reports whether the owner has ended the daemon.
func (s *Supervisor) unwanted() bool { return unwanted(s.Home) }

func unwanted(h home.Dir) bool {
	d, err := home.Desired(h).Load(agent.DaemonName)
	return err == nil && !d.Up
}

func (s *Supervisor) wait(ctx context.Context, d time.Duration) error {
	if s.unwanted() {
		return errLeft
	}
	return proc.Sleep(ctx, d)
}
