package mailbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"netsky/bus/envelope"
)

// A Mark distinguishes one state of a file from every other.
type Mark struct {
	Dev, Ino uint64
	Size     int64
	MTime    int64 // nanoseconds
}

// MarkOf returns the mark of a file with these attributes.
func MarkOf(st unix.Stat_t) Mark {
	return Mark{uint64(st.Dev), st.Ino, st.Size, st.Mtim.Nano()}
}

// ErrGrowing reports a file that changed while it was read.
var ErrGrowing = errors.New("still being written")

// An OddError is a fault of the file itself that no further writing can repair.
type OddError struct{ error }

func (e OddError) Unwrap() error { return e.error }

func oddf(format string, args ...any) error { return OddError{envelope.Invalidf(format, args...)} }

// ReadFile reads a small file by descriptor. It follows no link, never blocks, and
// reads only a regular file of this user's that others can't write to, and at most
// limit bytes. Faults of the file match ErrInvalid; errors of the system don't.
func ReadFile(dir int, name string, limit int64) ([]byte, Mark, error) {
	fd, err := Open(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|NoAtime)
	switch err {
	case nil:
	case unix.ELOOP:
		return nil, Mark{}, oddf("a symbolic link")
	case unix.ENXIO, unix.EOPNOTSUPP:
		return nil, Mark{}, oddf("not a regular file")
	case unix.EACCES:
		return nil, Mark{}, envelope.Invalidf("not readable by netsky")
	default:
		return nil, Mark{}, fmt.Errorf("open %s: %w", name, err)
	}
	defer unix.Close(fd)
	st, err := Fstat(fd)
	if err != nil {
		return nil, Mark{}, fmt.Errorf("stat %s: %w", name, err)
	}
	m := MarkOf(st)
	if err := CheckStat(st); err != nil {
		return nil, m, err
	}
	if st.Size > limit {
		return nil, m, envelope.Invalidf("%d bytes: at most %d", st.Size, limit)
	}
	data := make([]byte, st.Size+1) // one more, to detect growth
	n, err := Read(fd, data, int(st.Size))
	if err != nil {
		return nil, m, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(n) != st.Size {
		return nil, m, fmt.Errorf("%s: %w", name, ErrGrowing)
	}
	return data[:n], m, nil
}

// CheckStat refuses anything but a regular file, and one that another user could have
// written: with another owner, or writable by all. The group's bit is left to the
// user's umask; no other group can reach below a home of mode 0700.
func CheckStat(st unix.Stat_t) error {
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return oddf("not a regular file")
	case int(st.Uid) != os.Getuid() && st.Uid != 0:
		return oddf("owned by user %d", st.Uid)
	case st.Mode&0o002 != 0:
		return oddf("writable by others (mode %04o)", st.Mode&0o7777)
	}
	return nil
}

// Same reports whether two marks describe the same state of one file, whatever device
// the system reports for it.
func (m Mark) Same(n Mark) bool {
	m.Dev, n.Dev = 0, 0
	return m == n
}

// Gone reports whether the error means that another process has removed the file.
func Gone(err error) bool { return errors.Is(err, unix.ENOENT) }

// TempName returns the hidden name under which a file is written.
func TempName(name string) string { return "." + name + TempSuffix }

const TempSuffix = ".tmp"

// ErrNotSynced reports that a file may not survive a loss of power.
var ErrNotSynced = errors.New("not synced")

// A Maker creates files. It determines only once whether the process's umask leaves
// them the mode they need.
type Maker struct {
	fine atomic.Bool
}

// WriteNew writes and fsyncs a new file. If it fails, it leaves none.
func (m *Maker) WriteNew(dir int, name string, write func(fd int) error) (err error) {
	fd, err := Open(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW)
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
			Unlink(dir, name)
		}
	}()
	if err := m.EnsureMode(fd); err != nil {
		return err
	}
	if err := write(fd); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := Fsync(fd); err != nil {
		return fmt.Errorf("fsync: %w: %w", ErrNotSynced, err)
	}
	return nil
}

// Replace replaces a file that a loss of power may destroy. A crash leaves a part of it
// or none.
func (m *Maker) Replace(dir int, name string, data []byte) error {
	err := Unlink(dir, name)
	if err != nil && err != unix.ENOENT {
		return fmt.Errorf("write %s: %w", name, err)
	}
	fd, err := Open(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err = m.EnsureMode(fd); err == nil {
		err = Write(fd, data)
	}
	if closed := unix.Close(fd); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// EnsureMode makes a file's mode 0600, which a strict umask prevents.
func (m *Maker) EnsureMode(fd int) error {
	if m.fine.Load() {
		return nil
	}
	st, err := Fstat(fd)
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

// A ReaderAt reads a descriptor at any offset.
type ReaderAt int

func (fd ReaderAt) ReadAt(p []byte, off int64) (n int, err error) {
	err = retry(func() error {
		n, err = unix.Pread(int(fd), p, off)
		return err
	})
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return max(n, 0), err
}

// A Writer writes to a descriptor.
type Writer int

func (fd Writer) Write(p []byte) (int, error) {
	if err := Write(int(fd), p); err != nil {
		return 0, err
	}
	return len(p), nil
}
