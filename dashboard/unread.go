package dashboard

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"netsky/agent"
	"netsky/bus"
	"netsky/store"
)

// maxUnread is how many letters are looked into; any before those only count.
const maxUnread = 100

// An unread knows which of the owner's mail is not marked as read: `netsky inbox`
// marks what it has shown, a page only what it is told to.
type unread struct {
	home agent.Home
	bus  *bus.Bus

	mu    sync.Mutex        // guards what follows
	file  os.FileInfo       // of which shown was read
	shown map[string]bool   // by file name
	known map[string]letter // what is in the files that were looked into
}

func newUnread(home agent.Home) *unread {
	return &unread{home: home, bus: bus.New(home, bus.Options{})}
}

// A mailFile is a letter of the owner's that is not marked as read.
type mailFile struct {
	place bus.Place
	name  string
}

// files lists what is not marked as read, the newest first. The caller holds mu.
func (u *unread) files() ([]mailFile, error) {
	if err := u.readShown(); err != nil {
		return nil, err
	}
	var files []mailFile
	seen := map[string]bool{}
	for _, p := range []bus.Place{bus.Inbox, bus.Claimed, bus.Delivered} { // as a letter moves: none slips by
		names, err := u.bus.Names(agent.Owner, p)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, bus.ErrNoMailbox) {
			return nil, err
		}
		for _, name := range names {
			if !u.shown[name] && !seen[name] {
				seen[name] = true
				files = append(files, mailFile{p, name})
			}
		}
	}
	slices.SortFunc(files, func(x, y mailFile) int { return strings.Compare(y.name, x.name) })
	return files, nil
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
		if known[f.name] = l; l.Unread {
			n++
			newest = append(newest, l)
		}
	}
	u.known = known
	return n, newest, nil
}

// letter is what a file holds. What is no message is not shown as one.
func (u *unread) letter(f mailFile) (letter, bool) {
	if l, ok := u.known[f.name]; ok {
		return l, true
	}
	e, err := u.bus.Read(agent.Owner, f.place, f.name)
	if err != nil {
		return letter{}, false
	}
	return letter{
		Message: store.Message{ID: e.Envelope.ID, From: e.Envelope.From},
		Unread:  e.Err == nil && !e.Envelope.Kind.Control(), File: f.name,
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
		if upTo != "" && f.name <= upTo {
			names = append(names, f.name)
		} else if upTo == "" {
			if l, ok := u.letter(f); ok && l.ID == id && l.From == from {
				names = append(names, f.name)
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	f, err := u.home.OpenAppend(agent.OwnerRead)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(names, "\n") + "\n")
	return errors.Join(err, f.Close())
}

// readShown reads what was shown, if that has changed.
func (u *unread) readShown() error {
	info, err := os.Lstat(u.home.Path(agent.OwnerRead))
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
