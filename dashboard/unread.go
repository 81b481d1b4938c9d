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

// An unread knows which of the owner's mail `netsky inbox` has not shown yet. A
// page does not count as having shown it: looking changes nothing.
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

// mail is how many letters there are, and the newest of them: their senders and
// ids.
func (u *unread) mail() (n int, newest []letter, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.readShown(); err != nil {
		return 0, nil, err
	}
	type file struct {
		place bus.Place
		name  string
	}
	var files []file
	seen := map[string]bool{}
	for _, p := range []bus.Place{bus.Inbox, bus.Claimed, bus.Delivered} { // as a letter moves: none slips by
		names, err := u.bus.Names(agent.Owner, p)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, bus.ErrNoMailbox) {
			return 0, nil, err
		}
		for _, name := range names {
			if !u.shown[name] && !seen[name] {
				seen[name] = true
				files = append(files, file{p, name})
			}
		}
	}
	slices.SortFunc(files, func(x, y file) int { return strings.Compare(y.name, x.name) })
	known := map[string]letter{}
	for i, f := range files {
		if i == maxUnread {
			n += len(files) - i
			break
		}
		l, ok := u.known[f.name]
		if !ok {
			e, err := u.bus.Read(agent.Owner, f.place, f.name)
			if err != nil {
				continue // it was just moved on, and is seen at the next look
			}
			// What is no message is not shown as one.
			l = letter{Message: store.Message{ID: e.Envelope.ID, From: e.Envelope.From}, Unread: e.Err == nil && !e.Envelope.Kind.Control()}
		}
		if known[f.name] = l; l.Unread {
			n++
			newest = append(newest, l)
		}
	}
	u.known = known
	return n, newest, nil
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
