package bus

import (
	"context"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus/watch"
)

// A Spot is a directory to watch. Without a Mailbox it means all mailboxes,
// also those that are made later. Inbox, Claimed and Outbox can be watched;
// other places only grow, and a change in them is announced by one in these.
type Spot struct {
	Mailbox agent.ID
	Place   Place
}

// A Watch says that something may have changed in mailboxes.
type Watch = watch.Watch

// Watch begins to look at directories. When it returns, every later change is
// announced, so list afterwards. It ends with ctx or Close.
func (b *Bus) Watch(ctx context.Context, spots ...Spot) (*Watch, error) {
	var of watch.Of
	for _, s := range spots {
		if s.Mailbox == "" {
			of.Each = append(of.Each, string(s.Place))
		} else {
			of.Dirs = append(of.Dirs, b.home.Path(placePath(s.Mailbox, s.Place)))
		}
	}
	return b.hub.Watch(ctx, of)
}

// WatchEvents is Watch of what witnesses and other processes beside the agents'
// receivers note, of all agents.
func (b *Bus) WatchEvents(ctx context.Context) (*Watch, error) {
	return b.hub.Watch(ctx, watch.Of{Dirs: []string{b.home.Path(home.EventsDir)}, Arrivals: true})
}

// mailboxDirs are the directories of all mailboxes.
func (b *Bus) mailboxDirs() ([]string, error) {
	ids, err := b.Mailboxes()
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
