package dashboard

import (
	"slices"
	"strings"
	"sync"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/store"
)

// maxUnread is how many letters are looked into; any before those only count.
const maxUnread = 100

// An unread knows which of the owner's mail is not marked as read: `netsky inbox`
// marks what it has shown, a page only what it is told to.
type unread struct {
	home home.Dir
	bus  Bus

	mu    sync.Mutex        // guards what follows
	known map[string]letter // what is in the files that were looked into
}

func newUnread(home home.Dir, bus Bus) *unread { return &unread{home: home, bus: bus} }

// files names what is not marked as read, the newest first.
func (u *unread) files() ([]string, error) {
	names, err := u.bus.Unread()
	slices.SortFunc(names, func(x, y string) int { return strings.Compare(y, x) })
	return names, err
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
		Unread:  e.IsMessage(), File: name,
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
