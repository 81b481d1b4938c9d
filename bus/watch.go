package bus

import (
	"context"

	"netsky/agent"
	"netsky/bus/mailbox"
	"netsky/home"
)

// A Spot is a directory to watch. Without a Mailbox it means all mailboxes, including
// later ones; without a Place, the mailbox itself, which has the journal. Inbox, Claimed and
// Outbox can be watched; other places only grow, and every change in them comes with one in these.
type Spot struct {
	Mailbox agent.ID
	Place   Place
	Dir     string // or another directory of the home
}

// A Watch reports that something may have changed in mailboxes.
type Watch = mailbox.Watch

// Watch starts to watch directories. When it returns, every later change is reported, so
// list afterwards. It ends with ctx or Close.
func (b *Bus) Watch(ctx context.Context, spots ...Spot) (*Watch, error) {
	var of mailbox.Watched
	for _, s := range spots {
		switch {
		case s.Dir != "":
			of.Dirs = append(of.Dirs, b.home.Path(s.Dir))
		case s.Mailbox == "":
			of.Each = append(of.Each, string(s.Place))
		default:
			of.Dirs = append(of.Dirs, b.home.Path(placePath(s.Mailbox, s.Place)))
		}
	}
	return b.hub.Watch(ctx, of)
}

// WatchEvents watches, for all agents, what witnesses and other processes beside the
// receivers record.
func (b *Bus) WatchEvents(ctx context.Context) (*Watch, error) {
	return b.hub.Watch(ctx, mailbox.Watched{Dirs: []string{b.home.Path(home.EventsDir)}, Arrivals: true})
}

// mailboxDirs returns the directories of all mailboxes.
func (b *Bus) mailboxDirs() ([]string, error) {
	ids, err := b.All()
	dirs := make([]string, len(ids))
	for i, id := range ids {
		dirs[i] = b.home.Path(home.Mailbox(id))
	}
	return dirs, err
}

// Spots are the directories in which a change announces mail coming into a
// mailbox, and being filed.
func Spots(id agent.ID) []Spot {
	return []Spot{{Mailbox: id, Place: Inbox}, {Mailbox: id, Place: Claimed}}
}
