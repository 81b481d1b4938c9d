package update

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"netsky/home"
	"netsky/internal/advice"
	"netsky/store"
)

// A Draft is a run that is being prepared.
type Draft struct {
	Run     Run
	home    home.Dir
	lock    *home.Lock
	program *os.File // the lock on the program's directory
	journal *store.Journal
}

// Enter begins the next step of the preparation. commands are what is run.
func (d *Draft) Enter(ctx context.Context, name string, commands ...string) error {
	err := d.Run.enter(d.home, Preparing, name, commands...)
	if err == nil {
		d.journal.Record(ctx, d.Run.record()...) // else it is in the run
	}
	return err
}

// Note keeps what a step has found.
func (d *Draft) Note(text string) { d.Run.step().Note = text }

// Stage names the file that the new program is written to. It is beside the old one, so that it can take its place by
// a rename.
func (d *Draft) Stage() (string, error) {
	d.Run.Staged = d.Run.beside("")
	return d.Run.Staged, d.Run.save(d.home) // so that another run can remove it
}

// Scratch returns a new directory outside of the home, for what only the preparation needs; it is removed with that. Its path
// is short, so that it can be a home.
func (d *Draft) Scratch() (string, error) {
	if d.Run.Scratch == "" {
		dir := d.Run.scratch(os.TempDir())
		if err := os.Mkdir(dir, 0o700); err != nil {
			return "", err
		}
		d.Run.Scratch = dir // not before it is ours: another run removes what is named
		if err := d.Run.save(d.home); err != nil {
			return "", err
		}
	}
	return os.MkdirTemp(d.Run.Scratch, "")
}

func (r Run) scratch(dir string) string { return filepath.Join(dir, "."+r.ID) }

// clear removes that directory.
func (r Run) clear() error {
	if r.Scratch == "" {
		return nil
	}
	info, err := os.Lstat(r.Scratch)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || !ok || int(st.Uid) != os.Getuid() {
		return nil // somebody else's
	}
	return os.RemoveAll(r.Scratch)
}

// Abandon ends the run; nothing was changed. why is on record.
func (d *Draft) Abandon(ctx context.Context, why error) error {
	defer d.close()
	return d.abandon(ctx, why)
}

func (d *Draft) abandon(ctx context.Context, why error) error {
	d.Run.step().Error = why.Error()
	d.Run.Why = why.Error()
	err := errors.Join(d.Run.unstage(), d.Run.enter(d.home, Failed, string(Failed)))
	d.journal.Record(context.WithoutCancel(ctx), d.Run.record()...)
	return err
}

// HandOver keeps the installed program under a second name, from which the supervisor runs, and lets a supervisor have
// the run: [Finish] starts one. With an error the run has ended, as Abandon ends it.
func (d *Draft) HandOver(ctx context.Context) (Run, error) {
	defer d.close()
	err := d.Run.keepOld()
	if err == nil {
		err = d.Run.clear()
	}
	if err == nil {
		err = d.Run.enter(d.home, Prepared, string(Prepared))
	}
	if err != nil {
		return d.Run, errors.Join(err, d.abandon(ctx, err))
	}
	d.journal.Record(ctx, d.Run.record()...)
	return d.Run, nil
}

func (d *Draft) close() {
	d.journal.Close()
	if d.program != nil {
		d.program.Close()
	}
	d.lock.Unlock()
}

// lockProgram takes the lock of the program that the run exchanges, which homes may share. It ends with the file.
func (r Run) lockProgram() (*os.File, error) {
	if r.Kind == Restart {
		return nil, nil
	}
	dir, err := os.Open(filepath.Dir(r.Binary))
	if err != nil {
		return nil, err
	}
	for range 20 { // a child that is just being started may still have it
		if err = unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != unix.EWOULDBLOCK {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		dir.Close()
		if err == unix.EWOULDBLOCK {
			return nil, advice.With(fmt.Errorf("%s: %w, by another home that shares it", r.Binary, ErrBusy), "wait for that, then run this again")
		}
		return nil, &fs.PathError{Op: "lock", Path: filepath.Dir(r.Binary), Err: err}
	}
	return dir, nil
}
