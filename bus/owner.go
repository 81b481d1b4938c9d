package bus

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"

	"netsky/agent"
	"netsky/agent/home"
)

// Unread names the owner's mail that has not been shown yet, oldest first, copies
// and expired mail left out. It opens no envelope: some of it may be no message.
// Without a mailbox there is none.
func (b *Bus) Unread() ([]string, error) {
	names, err := b.Mail(agent.Owner, false)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNoMailbox) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	shown, err := b.shown.names(b.home)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(names, func(name string) bool { return shown[name] }), nil
}

// shown is the list of the owner's mail that has been shown, as it was last read.
type shown struct {
	mu   sync.Mutex  // guards what follows
	file os.FileInfo // of which list was read
	list map[string]bool
}

// names reads the list if it has changed: it is only appended to, or replaced.
func (s *shown) names(h home.Dir) (map[string]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Lstat(h.Path(home.OwnerRead))
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
