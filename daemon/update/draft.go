package update

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"netsky/home"
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
	dir, name := filepath.Split(d.Run.Binary)
	d.Run.Staged = filepath.Join(dir, "."+name+"-"+d.Run.ID)
	return d.Run.Staged, d.Run.save(d.home) // so that another run can remove it
}

// unstage removes the file of a run that was cut off.
func (r Run) unstage() error {
	if r.Staged == "" {
		return nil
	}
	if err := os.Remove(r.Staged); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Abandon ends the run; nothing was changed. why is on record.
func (d *Draft) Abandon(ctx context.Context, why error) error {
	defer d.close()
	d.Run.step().Error = why.Error()
	d.Run.Why = why.Error()
	err := errors.Join(d.Run.unstage(), d.Run.enter(d.home, Failed, string(Failed)))
	d.journal.Record(context.WithoutCancel(ctx), d.Run.record()...)
	return err
}

// HandOver keeps the installed program under a second name, from which the supervisor runs, and lets a supervisor have
// the run: [Finish] starts one.
func (d *Draft) HandOver(ctx context.Context) (Run, error) {
	defer d.close()
	if d.Run.Previous != "" {
		if err := keep(d.Run.Binary, d.Run.Previous); err != nil {
			return d.Run, err
		}
	}
	err := d.Run.enter(d.home, Prepared, string(Prepared))
	d.journal.Record(ctx, d.Run.record()...)
	return d.Run, err
}

func (d *Draft) close() {
	d.journal.Close()
	if d.program != nil {
		d.program.Close()
	}
	d.lock.Unlock()
}

// Kept returns the name under which a program is kept.
func Kept(binary string) string { return binary + ".previous" }

// keep gives the file a second name, in one step: it is there with what it was, or is the present one.
func keep(file, name string) error {
	temp := name + ".new"
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Link(file, temp); err != nil {
		return err
	}
	return place(temp, name)
}

// place renames a file to its name in the same directory, and returns when that survives a loss of power.
func place(file, name string) error {
	if err := os.Rename(file, name); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// lockProgram takes the lock of a program, which homes may share. It ends with the file.
func lockProgram(binary string) (*os.File, error) {
	dir, err := os.Open(filepath.Dir(binary))
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
			return nil, ErrBusy
		}
		return nil, &fs.PathError{Op: "lock", Path: filepath.Dir(binary), Err: err}
	}
	return dir, nil
}
