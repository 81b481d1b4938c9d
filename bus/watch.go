package bus

import (
	"context"
	"sync"

	"netsky/agent"
	"netsky/agent/home"
)

// A Spot is a directory to watch. Without a Mailbox it means all mailboxes,
// also those that are made later. Inbox, Claimed and Outbox can be watched;
// other places only grow, and a change in them is announced by one in these.
type Spot struct {
	Mailbox agent.ID
	Place   Place
}

// A Watch says that something may have changed in the directories it looks at.
// It is a hint: whoever gets one lists again. A first hint waits from the
// beginning, one comes every 30 s in any case, and hints that nobody has taken
// become one.
type Watch struct {
	C <-chan struct{}

	c     chan struct{}
	hub   *hub
	spots []Spot
	files []string // watched besides the spots, relative to the home
	// arrivals: only what comes into a directory counts. Whoever takes the
	// files out of it need not be told of that.
	arrivals bool

	once   sync.Once
	cancel func() bool
}

// Watch begins to look at directories. When it returns, every later change is
// announced, so list afterwards. It ends with ctx or Close.
func (b *Bus) Watch(ctx context.Context, spots ...Spot) (*Watch, error) {
	w := &Watch{spots: spots}
	return w, b.startWatch(ctx, w)
}

// WatchEvents is Watch of what witnesses and other processes beside the agents'
// receivers note, of all agents.
func (b *Bus) WatchEvents(ctx context.Context) (*Watch, error) {
	w := &Watch{files: []string{home.EventsDir}, arrivals: true}
	return w, b.startWatch(ctx, w)
}

func (b *Bus) startWatch(ctx context.Context, w *Watch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.c = make(chan struct{}, 1) // one hint says as much as many
	w.C = w.c
	w.hub = &b.hub
	w.c <- struct{}{}
	b.hub.add(b, w)
	w.cancel = context.AfterFunc(ctx, w.leave) // may run before it is assigned
	return nil
}

// Close ends the watch; the last one waits for the watcher's goroutine.
func (w *Watch) Close() {
	w.cancel()
	w.leave()
}

func (w *Watch) leave() {
	w.once.Do(func() { w.hub.remove(w) })
}

// Polling reports whether the system would not watch, so that the directories
// are looked at four times a second instead.
func (w *Watch) Polling() bool { return w.hub.polling(w) }

func (w *Watch) hint() {
	select {
	case w.c <- struct{}{}:
	default:
	}
}
