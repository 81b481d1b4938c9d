package home

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// ShownMail is which of the owner's mail was shown.
type ShownMail Dir

// Mark records files of the owner's mail as shown.
func (h ShownMail) Mark(names ...string) error {
	if len(names) == 0 {
		return nil
	}
	f, err := h.open()
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(names, "\n") + "\n")
	return errors.Join(err, f.Close())
}

// settledMark begins the line of mail that was settled before it was shown. A name has no
// slash.
const settledMark = "settled/"

// MarkSettled records files of the owner's mail as settled by themselves: nothing is left to
// do about them. They count as shown, but until they are, [Shown.Names] has them apart.
func (h ShownMail) MarkSettled(names ...string) error {
	lines := make([]string, len(names))
	for i, name := range names {
		lines[i] = settledMark + name
	}
	return h.Mark(lines...)
}

// open opens the file for appending. Until it is closed nobody replaces it.
func (h ShownMail) open() (*os.File, error) {
	for {
		f, err := Dir(h).OpenAppend(OwnerRead)
		if err != nil {
			return nil, err
		}
		err = flockShown(f, unix.LOCK_SH)
		is, serr := f.Stat()
		now, lerr := os.Lstat(Dir(h).Path(OwnerRead))
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

// minShown is the size in bytes from which Forget is worth its while.
const minShown = 256 << 10

// Forget removes the names of files that are gone from the list of shown mail, if it
// is long and half of it is, and returns how many. A crash leaves the old list or the new.
func (h ShownMail) Forget(gone func(name string) bool) (n int, err error) {
	if info, err := os.Lstat(Dir(h).Path(OwnerRead)); err != nil || info.Size() < minShown {
		return 0, nil // without a file there is nothing to forget
	}
	f, err := h.open()
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if flockShown(f, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return 0, nil // it is being written; the next time
	}
	lines, err := h.lines()
	if err != nil {
		return 0, err
	}
	var keep []byte
	for line := range lines {
		if gone(strings.TrimPrefix(line, settledMark)) {
			n++
		} else {
			keep = append(append(keep, line...), '\n')
		}
	}
	if n < len(lines)/2 {
		return 0, nil
	}
	return n, Dir(h).WriteFile(OwnerRead, keep, true)
}

// Names returns the names of the owner's envelopes that were shown, or settled. A line
// truncated by a crash names no file and does no harm.
func (h ShownMail) Names() (map[string]bool, error) {
	lines, err := h.lines()
	if err != nil {
		return nil, err
	}
	shown, _ := byState(lines)
	return shown, nil
}

// byState returns the names of the mail that was shown or settled, and of what of it was settled and has not
// been shown.
func byState(lines map[string]bool) (shown, settled map[string]bool) {
	shown, settled = make(map[string]bool, len(lines)), make(map[string]bool)
	for line := range lines {
		name, ok := strings.CutPrefix(line, settledMark)
		shown[name] = true
		if ok && !lines[name] {
			settled[name] = true
		}
	}
	return shown, settled
}

func (h ShownMail) lines() (map[string]bool, error) {
	data, err := Dir(h).ReadFile(OwnerRead, 64<<20)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	lines := make(map[string]bool)
	for line := range strings.SplitSeq(string(data), "\n") {
		if line != "" {
			lines[line] = true
		}
	}
	return lines, nil
}

// Shown caches which of the owner's mail was shown, and which was settled. The zero value is ready to use.
type Shown struct {
	mu            sync.Mutex  // guards the fields below
	file          os.FileInfo // the file that they were read from
	list, settled map[string]bool
}

// Names returns the names of what was shown or settled, and of what of it was settled and has not been shown. It
// reads them if the file has changed: it is only appended to, or replaced.
func (s *Shown) Names(h Dir) (shown, settled map[string]bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Lstat(h.Path(OwnerRead))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	if err == nil && s.file != nil && os.SameFile(info, s.file) && info.Size() == s.file.Size() {
		return s.list, s.settled, nil
	}
	lines, err := ShownMail(h).lines()
	if err != nil {
		s.file = nil
		return nil, nil, err
	}
	s.file = info
	s.list, s.settled = byState(lines)
	return s.list, s.settled, nil
}
