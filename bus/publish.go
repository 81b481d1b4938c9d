package bus

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
)

// nameTries is how often a publisher looks for a free name.
const nameTries = 8

// errSwept reports a file that was removed by the sweep before it had its name: the clock
// jumped ahead by days.
var errSwept = errors.New("removed as left over before it was sent: has the clock jumped?")

// A filer puts files into open directories, so that no reader sees half of one and none is overwritten.
type filer struct {
	names envelope.Namer
	files mailbox.Maker
}

// publish puts a whole envelope into a directory under a new name. When it returns nil,
// the file survives a power loss. When it fails, no reader has seen or will see the file,
// with one exception: it had been taken already when the directory could not be fsynced.
func (f *filer) publish(dir int, from agent.ID, data []byte) (name string, err error) {
	for range nameTries {
		name = f.names.Name(from)
		err = f.publishAs(dir, name, data)
		if err != unix.EEXIST && err != errSwept {
			break
		}
	}
	return name, err
}

func (f *filer) publishAs(dir int, name string, data []byte) error {
	temp := mailbox.TempName(name)
	write := func(fd int) error { return mailbox.Write(fd, data) }
	err := f.files.WriteNew(dir, temp, write)
	if errors.Is(err, mailbox.ErrNotSynced) {
		// The kernel may have dropped what it could not write, and a second fsync would then
		// succeed. So the file is written once more.
		err = f.files.WriteNew(dir, temp, write)
	}
	if err != nil {
		return err
	}
	err = mailbox.Link(dir, temp, dir, name)
	mailbox.Unlink(dir, temp) // if that fails, its other name remains, for the receiver to remove
	switch err {
	case nil:
	case unix.EEXIST:
		return err
	case unix.ENOENT:
		return errSwept
	default:
		return fmt.Errorf("link %s: %w", name, err)
	}
	if err := mailbox.Fsync(dir); err != nil {
		// It might not survive a power loss, so it is withdrawn and reported as not sent.
		if undo := mailbox.Unlink(dir, name); undo != nil {
			return fmt.Errorf("fsync of the directory: %w; %s may have been received anyway", err, name)
		}
		return fmt.Errorf("fsync of the directory: %w", err)
	}
	return nil
}

// move moves a file between two directories under its own name, or with ~2, ~3, … appended
// if that is taken. It never overwrites.
func move(from int, name string, to int) (newName string, err error) {
	newName = name
	for n := int64(2); ; n++ {
		err := mailbox.Move(from, name, to, newName)
		if err == unix.EEXIST {
			if n > 100 { // a script drops the same name for ever
				n = time.Now().UnixNano()
			}
			newName = envelope.NextName(name, n)
			continue
		}
		if err != nil {
			return "", fmt.Errorf("move %s: %w", name, err)
		}
		return newName, nil
	}
}

// readWhy reads the .why beside a file; it is empty if there is none.
func readWhy(dir int, name string) mailbox.Why {
	data, _, err := mailbox.ReadFile(dir, envelope.WhyName(name), 64<<10)
	if err != nil {
		return mailbox.Why{}
	}
	return mailbox.ParseWhy(data)
}

// explain writes the .why of a file. If that fails, the message is still where it belongs.
func (f *filer) explain(dir int, name string, w mailbox.Why) error {
	return f.files.Replace(dir, envelope.WhyName(name), []byte(w.String()))
}

// file moves a file to delivered/ with what there is to say about it, which precedes the
// file: without it the file would be new mail that was read. If that can't be written
// before, it is written after; told reports a failure there, and a .why that was left.
func (f *filer) file(from int, name string, to int, w mailbox.Why, told func(what string, err error)) (moved string, err error) {
	early := false
	if _, there := mailbox.Lstat(to, name); w.Text != "" && there == unix.ENOENT {
		early = f.explain(to, name, w) == nil
	}
	moved, err = move(from, name, to)
	if early && (err != nil || moved != name) {
		if err := mailbox.Unlink(to, envelope.WhyName(name)); err != nil && err != unix.ENOENT {
			told("left a .why without its file: "+name, err)
		}
		early = false
	}
	if err == nil && w.Text != "" && !early {
		if err := f.explain(to, moved, w); err != nil {
			told("cannot write the .why of "+moved, err)
		}
	}
	return moved, err
}

// poison moves a file to poison/, byte for byte, with its reason beside it.
func (f *filer) poison(from int, name string, to int, reason error, o mailbox.Origin) (newName string, err error) {
	newName, err = move(from, name, to)
	if err != nil {
		return "", err
	}
	return newName, f.explain(to, newName, mailbox.Poisoned(reason, o))
}
