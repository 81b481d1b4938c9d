package bus

import (
	"errors"
	"fmt"
	"os"
	"time"

	"netsky/bus/envelope"

	"golang.org/x/sys/unix"
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

// An unfinishedError is about a file that is the beginning of an envelope.
type unfinishedError struct{ error }

func (e unfinishedError) Unwrap() error { return e.error }

// readEnvelope reads and parses one file and gives the envelope its ID. What is
// wrong with it is named in full.
func (b *Bus) readEnvelope(dir int, name string, f form) (envelope.Envelope, mark, error) {
	data, m, err := readFile(dir, name, b.maxBytes)
	if err != nil {
		return envelope.Envelope{}, m, err
	}
	e, err := f.parse(data)
	if err != nil {
		err = envelope.Join(f.faults(data))
		if envelope.Unfinished(data) {
			err = unfinishedError{err}
		}
		return envelope.Envelope{}, m, err
	}
	if e.ID == "" {
		e.ID = fileID(name, m.mtime, m.ino)
	}
	return e, m, nil
}

// orderTime is the place of a file in its mailbox's order, in nanoseconds.
func orderTime(dir int, name string) (ns int64, err error) {
	if ns, _, ok := nameParts(name); ok {
		return ns, nil
	}
	st, err := sysLstat(dir, name)
	if err != nil {
		return 0, err
	}
	return st.Mtim.Nano(), nil
}

func timeOf(ns int64) time.Time { return time.Unix(0, ns).UTC() }
