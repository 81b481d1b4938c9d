package dashboard

import (
	"slices"
	"strings"
	"sync"

	"netsky/agent"
	"netsky/home"
	"netsky/store"
)

// maxUnread is how many messages are opened; older ones are only counted.
const maxUnread = 100

// An unread knows which of the owner's mail is not marked as read: `netsky inbox` marks
// what it has shown, a page only what it is told to.
type unread struct {
	home home.Dir
	bus  Bus

	mu    sync.Mutex        // guards the fields below
	known map[string]letter // parsed files
}

func newUnread(home home.Dir, bus Bus) *unread { return &unread{home: home, bus: bus} }

// files lists the files not marked as read, the newest first.
func (u *unread) files() ([]string, error) {
	names, err := u.bus.Unread()
	slices.SortFunc(names, func(x, y string) int { return strings.Compare(y, x) })
	return names, err
}

// mail returns how many messages are unread, and the sender and id of the newest.
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
			continue // it has just been moved, and is found at the next call
		}
		if known[f] = l; l.Unread {
			n++
			newest = append(newest, l)
		}
	}
	u.known = known
	return n, newest, nil
}

// letter parses a file. One that is not a message is not shown as one.
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

// markRead marks the message with that id and sender as read, as `netsky inbox` does
// for what it has shown, or with upTo all files up to that one. It does nothing for a
// message that is marked already.
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
