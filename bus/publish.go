package bus

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus/disk"
	"netsky/bus/envelope"
)

// nameTries is how often a publisher looks for a free name.
const nameTries = 8

// errSwept is about a file that was swept away before it had its name: the clock
// leapt ahead by days.
var errSwept = errors.New("swept away")

// publish puts a whole envelope into a directory under a new name. When it
// returns nil, the file survives a loss of power. When it fails, no reader has
// seen or will see the file, but for one case: it had been taken already when
// the directory could not be fsynced.
func (b *Bus) publish(dir int, from agent.ID, data []byte) (name string, err error) {
	for range nameTries {
		name = b.names.Name(from)
		err = b.publishAs(dir, name, data)
		if err != unix.EEXIST && err != errSwept {
			break
		}
	}
	if err != nil {
		return "", err
	}
	return name, nil
}

func (b *Bus) publishAs(dir int, name string, data []byte) error {
	temp := disk.TempName(name)
	write := func(fd int) error { return disk.Write(fd, data) }
	err := b.files.WriteNew(dir, temp, write)
	if errors.Is(err, disk.ErrNotSynced) {
		// What the kernel could not write it may have thrown away, and a second
		// fsync would say that all is well. So the file is written once more.
		err = b.files.WriteNew(dir, temp, write)
	}
	if err != nil {
		return err
	}
	err = disk.Link(dir, temp, dir, name)
	if gone := disk.Unlink(dir, temp); err == nil && gone != nil && gone != unix.ENOENT {
		// The message is there, whole; only its other name stays, for the
		// receiver to sweep away.
		err = nil
	}
	switch err {
	case nil:
	case unix.EEXIST:
		return err
	case unix.ENOENT:
		return errSwept
	default:
		return fmt.Errorf("link %s: %w", name, err)
	}
	if err := disk.Fsync(dir); err != nil {
		// Not sure to survive a loss of power, so not sent: taken back.
		if undo := disk.Unlink(dir, name); undo != nil {
			return fmt.Errorf("fsync of the directory: %w; %s may have been taken all the same", err, name)
		}
		return fmt.Errorf("fsync of the directory: %w", err)
	}
	return nil
}

// move moves a file between two directories under its own name, or under one
// with ~2, ~3, … where that is taken. It never overwrites.
func move(from int, name string, to int) (newName string, err error) {
	newName = name
	for n := int64(2); ; n++ {
		err := disk.Move(from, name, to, newName)
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
