package home

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// MarkShown records files of the owner's mail as shown.
func (h Dir) MarkShown(names ...string) error {
	if len(names) == 0 {
		return nil
	}
	f, err := h.openShown()
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(names, "\n") + "\n")
	return errors.Join(err, f.Close())
}

// openShown opens the file for appending. Until it is closed nobody replaces it.
func (h Dir) openShown() (*os.File, error) {
	for {
		f, err := h.OpenAppend(OwnerRead)
		if err != nil {
			return nil, err
		}
		err = flockShown(f, unix.LOCK_SH)
		is, serr := f.Stat()
		now, lerr := os.Lstat(h.Path(OwnerRead))
		if err == nil && serr == nil && lerr == nil && os.SameFile(is, now) {
			return f, nil
		}
		f.Close() // it was replaced before we had the lock
		if err = errors.Join(err, serr); err != nil {
			return nil, err
		}
	}
}

func flockShown(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); err != unix.EINTR {
			return err
		}
	}
}

// minShown is the size in bytes from which ForgetShown is worth its while.
const minShown = 256 << 10

// ForgetShown removes the names of files that are gone from the list of shown mail, if it
// is long and half of it is, and returns how many. A crash leaves the old list or the new.
func (h Dir) ForgetShown(gone func(name string) bool) (n int, err error) {
	if info, err := os.Lstat(h.Path(OwnerRead)); err != nil || info.Size() < minShown {
		return 0, nil // without a file there is nothing to forget
	}
	f, err := h.openShown()
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if flockShown(f, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return 0, nil // it is being written; the next time
	}
	shown, err := h.ShownMail()
	if err != nil {
		return 0, err
	}
	var keep []byte
	for name := range shown {
		if gone(name) {
			n++
		} else {
			keep = append(append(keep, name...), '\n')
		}
	}
	if n < len(shown)/2 {
		return 0, nil
	}
	return n, h.WriteFile(OwnerRead, keep, true)
}

// ShownMail returns the names of the owner's envelopes that were shown. A line truncated
// by a crash names no file and does no harm.
func (h Dir) ShownMail() (map[string]bool, error) {
	data, err := h.ReadFile(OwnerRead, 64<<20)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	shown := make(map[string]bool)
	for name := range strings.SplitSeq(string(data), "\n") {
		if name != "" {
			shown[name] = true
		}
	}
	return shown, nil
}

// Shown caches what ShownMail returns. The zero value is ready to use.
type Shown struct {
	mu   sync.Mutex  // guards the fields below
	file os.FileInfo // the file that list was read from
	list map[string]bool
}

// Names reads the list if it has changed: it is only appended to, or replaced.
func (s *Shown) Names(h Dir) (map[string]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Lstat(h.Path(OwnerRead))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil && s.file != nil && os.SameFile(info, s.file) && info.Size() == s.file.Size() {
		return s.list, nil
	}
	if s.list, err = h.ShownMail(); err != nil {
		s.file = nil
		return nil, err
	}
	s.file = info
	return s.list, nil
}
