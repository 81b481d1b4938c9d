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

// publish puts a whole envelope into a directory under a new name. When it returns nil,
// the file survives a power loss. When it fails, no reader has seen or will see the file,
// with one exception: it had been taken already when the directory could not be fsynced.
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
	temp := mailbox.TempName(name)
	write := func(fd int) error { return mailbox.Write(fd, data) }
	err := b.files.WriteNew(dir, temp, write)
	if errors.Is(err, mailbox.ErrNotSynced) {
		// The kernel may have dropped what it could not write, and a second fsync would then
		// succeed. So the file is written once more.
		err = b.files.WriteNew(dir, temp, write)
	}
	if err != nil {
		return err
	}
	err = mailbox.Link(dir, temp, dir, name)
	if gone := mailbox.Unlink(dir, temp); err == nil && gone != nil && gone != unix.ENOENT {
		// The message is complete; only its other name remains, for the receiver to remove.
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
