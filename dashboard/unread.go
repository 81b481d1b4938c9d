package dashboard

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus"
	"netsky/store"
)

// maxUnread is how many letters are looked into; any before those only count.
const maxUnread = 100

// An unread knows which of the owner's mail is not marked as read: `netsky inbox`
// marks what it has shown, a page only what it is told to.
type unread struct {
	home home.Dir
	bus  *bus.Bus

	mu    sync.Mutex        // guards what follows
	file  os.FileInfo       // of which shown was read
	shown map[string]bool   // by file name
	known map[string]letter // what is in the files that were looked into
}

func newUnread(home home.Dir) *unread {
	return &unread{home: home, bus: bus.New(home, bus.Options{})}
}

// files names what is not marked as read, the newest first; what was filed
// unread, a copy or an expired letter, is not among it. The caller holds mu.
func (u *unread) files() ([]string, error) {
	if err := u.readShown(); err != nil {
		return nil, err
	}
	names, err := u.bus.Mail(agent.Owner, false)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, bus.ErrNoMailbox) {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return u.shown[name] })
	slices.SortFunc(names, func(x, y string) int { return strings.Compare(y, x) })
	return names, nil
}

// mail is how many letters there are, and the newest of them: their senders and
// ids.
func (u *unread) mail() (n int, newest []letter, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	files, err := u.files()
	if err != nil {
		return 0, nil, err
	}
	known := map[string]letter{}
	for i, f := range files {
		if i == maxUnread {
			n += len(files) - i
			break
		}
		l, ok := u.letter(f)
		if !ok {
			continue // it was just moved on, and is seen at the next look
		}
		if known[f] = l; l.Unread {
			n++
			newest = append(newest, l)
		}
	}
	u.known = known
	return n, newest, nil
}

// letter is what a file holds. What is no message is not shown as one.
func (u *unread) letter(name string) (letter, bool) {
	if l, ok := u.known[name]; ok {
		return l, true
	}
	e, err := u.bus.Find(agent.Owner, name)
	if err != nil {
		return letter{}, false
	}
	return letter{
		Message: store.Message{ID: e.Envelope.ID, From: e.Envelope.From},
		Unread:  e.Err == nil && !e.Envelope.Kind.Control(), File: name,
	}, true
}

// markRead marks the letter of that id and sender as read, as `netsky inbox`
// does that has shown it, or with upTo the files to that one. What is marked
// already is no mistake.
func (u *unread) markRead(id string, from agent.ID, upTo string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	files, err := u.files()
	if err != nil {
		return err
	}
	var names []string
	for _, f := range files {
		if upTo != "" && f <= upTo {
			names = append(names, f)
		} else if upTo == "" {
			if l, ok := u.letter(f); ok && l.ID == id && l.From == from {
				names = append(names, f)
			}
		}
	}
	return u.home.MarkShown(names...)
}

// readShown reads what was shown, if that has changed.
func (u *unread) readShown() error {
	info, err := os.Lstat(u.home.Path(home.OwnerRead))
	if errors.Is(err, fs.ErrNotExist) {
		u.file, u.shown = nil, nil
		return nil
	}
	if err != nil {
		return err
	}
	if u.file != nil && os.SameFile(info, u.file) && info.Size() == u.file.Size() {
		return nil // it is only added to, or another takes its place
	}
	shown, err := u.home.ShownMail()
	if err != nil {
		return err
	}
	u.file, u.shown = info, shown
	return nil
}
