package bus

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"netsky/agent"
)

// nameTries is how often a publisher looks for a free name.
const nameTries = 8

// publish puts a whole envelope into a directory under a new name. When it
// returns nil, the file survives a loss of power. When it fails, no reader has
// seen or will see the file, but for one case: it had been taken already when
// the directory could not be fsynced.
func (b *Bus) publish(dir int, from agent.ID, data []byte) (name string, err error) {
	for range nameTries {
		name = b.names.name(from)
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
	temp := tempName(name)
	write := func(fd int) error { return sysWrite(fd, data) }
	err := b.writeNew(dir, temp, write)
	if errors.Is(err, errNotSynced) {
		// What the kernel could not write it may have thrown away, and a second
		// fsync would say that all is well. So the file is written once more.
		err = b.writeNew(dir, temp, write)
	}
	if err != nil {
		return err
	}
	err = sysLink(dir, temp, dir, name)
	if gone := sysUnlink(dir, temp); err == nil && gone != nil && gone != unix.ENOENT {
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
	if err := sysFsync(dir); err != nil {
		// Not sure to survive a loss of power, so not sent: taken back.
		if undo := sysUnlink(dir, name); undo != nil {
			return fmt.Errorf("fsync of the directory: %w; %s may have been taken all the same", err, name)
		}
		return fmt.Errorf("fsync of the directory: %w", err)
	}
	return nil
}

// tempName is the hidden name under which a file is written.
func tempName(name string) string { return "." + name + tempSuffix }

const tempSuffix = ".tmp"

var (
	errNotSynced = errors.New("not synced")
	errSwept     = errors.New("swept away before it had its name") // the clock leapt ahead by days
)

// writeNew writes and fsyncs a file that was not there before. If it fails, it
// leaves none.
func (b *Bus) writeNew(dir int, name string, write func(fd int) error) (err error) {
	fd, err := sysOpen(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW)
	if err == unix.EEXIST {
		return err
	}
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	defer func() {
		if closed := unix.Close(fd); err == nil && closed != nil {
			err = fmt.Errorf("close: %w", closed)
		}
		if err != nil {
			sysUnlink(dir, name)
		}
	}()
	if err := b.ensureMode(fd); err != nil {
		return err
	}
	if err := write(fd); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := sysFsync(fd); err != nil {
		return fmt.Errorf("fsync: %w: %w", errNotSynced, err)
	}
	return nil
}

// ensureMode makes a file's mode 0600, which a strict umask prevents.
func (b *Bus) ensureMode(fd int) error {
	if b.modeFine.Load() { // the umask is the process's, and so is this bus
		return nil
	}
	st, err := sysFstat(fd)
	if err == nil && st.Mode&0o777 == 0o600 {
		b.modeFine.Store(true)
	} else if err == nil {
		err = unix.Fchmod(fd, 0o600)
	}
	if err != nil {
		return fmt.Errorf("chmod: %w", err)
	}
	return nil
}
