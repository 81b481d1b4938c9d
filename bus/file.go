package bus

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"netsky/bus/envelope"
)

// A mark is what tells one state of a file from every other.
type mark struct {
	dev, ino uint64
	size     int64
	mtime    int64 // nanoseconds
}

func markOf(st unix.Stat_t) mark {
	return mark{uint64(st.Dev), st.Ino, st.Size, st.Mtim.Nano()}
}

// errGrowing is what a file matches that changed while it was read.
var errGrowing = errors.New("still being written")

// An oddError is a fault of the file itself that no more writing can mend.
type oddError struct{ error }

func (e oddError) Unwrap() error { return e.error }

func oddf(format string, args ...any) error { return oddError{envelope.Invalidf(format, args...)} }

// readFile reads a small file by descriptor. It follows no link, never blocks,
// and reads nothing but a regular file of ours that others can't write to, and
// never more than limit bytes. Faults of the file match ErrInvalid; errors of
// the system don't.
func readFile(dir int, name string, limit int64) ([]byte, mark, error) {
	fd, err := sysOpen(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|noAtime)
	switch err {
	case nil:
	case unix.ELOOP:
		return nil, mark{}, oddf("a symbolic link")
	case unix.ENXIO, unix.EOPNOTSUPP:
		return nil, mark{}, oddf("not a regular file")
	case unix.EACCES:
		return nil, mark{}, envelope.Invalidf("not readable by us")
	default:
		return nil, mark{}, fmt.Errorf("open %s: %w", name, err)
	}
	defer unix.Close(fd)
	st, err := sysFstat(fd)
	if err != nil {
		return nil, mark{}, fmt.Errorf("stat %s: %w", name, err)
	}
	m := markOf(st)
	if err := checkStat(st, os.Getuid()); err != nil {
		return nil, m, err
	}
	if st.Size > limit {
		return nil, m, envelope.Invalidf("%d bytes: at most %d", st.Size, limit)
	}
	data := make([]byte, st.Size+1) // one more, to see it grow
	n, err := sysRead(fd, data, int(st.Size))
	if err != nil {
		return nil, m, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(n) != st.Size {
		return nil, m, fmt.Errorf("%s: %w", name, errGrowing)
	}
	return data[:n], m, nil
}

// checkStat refuses what is no regular file, and one that another user could
// have written: of a foreign owner, or writable by all. The group's bit is
// left to the user's umask; no other group reaches below a home of mode 0700.
func checkStat(st unix.Stat_t, uid int) error {
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return oddf("not a regular file")
	case int(st.Uid) != uid && st.Uid != 0:
		return oddf("owned by user %d", st.Uid)
	case st.Mode&0o002 != 0:
		return oddf("writable by others (mode %04o)", st.Mode&0o7777)
	}
	return nil
}

// same reports whether two marks are of one state of one file, whatever device
// the system calls it on.
func (m mark) same(n mark) bool {
	m.dev, n.dev = 0, 0
	return m == n
}

// gone reports whether the file had been taken away by someone else.
func gone(err error) bool { return errors.Is(err, unix.ENOENT) }

// tempName is the hidden name under which a file is written.
func tempName(name string) string { return "." + name + tempSuffix }

const tempSuffix = ".tmp"

var errNotSynced = errors.New("not synced")

// A maker makes files. Whether the process's umask leaves them the mode they need
// is found out once.
type maker struct {
	fine atomic.Bool
}

// writeNew writes and fsyncs a file that was not there before. If it fails, it
// leaves none.
func (m *maker) writeNew(dir int, name string, write func(fd int) error) (err error) {
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
	if err := m.ensureMode(fd); err != nil {
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
func (m *maker) ensureMode(fd int) error {
	if m.fine.Load() {
		return nil
	}
	st, err := sysFstat(fd)
	if err == nil && st.Mode&0o777 == 0o600 {
		m.fine.Store(true)
	} else if err == nil {
		err = unix.Fchmod(fd, 0o600)
	}
	if err != nil {
		return fmt.Errorf("chmod: %w", err)
	}
	return nil
}

// A preader reads a descriptor at any offset.
type preader int

func (fd preader) ReadAt(p []byte, off int64) (n int, err error) {
	err = retry(func() error {
		n, err = unix.Pread(int(fd), p, off)
		return err
	})
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return max(n, 0), err
}

// A writer writes to a descriptor.
type writer int

func (fd writer) Write(p []byte) (int, error) {
	if err := sysWrite(int(fd), p); err != nil {
		return 0, err
	}
	return len(p), nil
}
