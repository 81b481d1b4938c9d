package home

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
)

// MarkShown records files of the owner's mail as shown.
func (h Dir) MarkShown(names ...string) error {
	if len(names) == 0 {
		return nil
	}
	f, err := h.OpenAppend(OwnerRead)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(names, "\n") + "\n")
	return errors.Join(err, f.Close())
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
