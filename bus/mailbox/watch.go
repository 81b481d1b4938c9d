package mailbox

import (
	"context"
	"sync"
)

// Watched says what a watch covers.
type Watched struct {
	Dirs []string // directories
	Each []string // names of directories below each of the hub's boxes, also later ones
	// Arrivals: only files that arrive in a directory count. The process that takes the
	// files out needs no hint of that.
	Arrivals bool
}

// A Watch hints that something may have changed in its directories: a reader that gets
// one lists them again. A first hint is there from the beginning, one is sent every 30
// s in any case, and several that nobody has received become one.
type Watch struct {
	C <-chan struct{}

	c   chan struct{}
	hub *Hub
	of  Watched

	once   sync.Once
	cancel func() bool
}

// Watch starts a watch. When it returns, every later change is reported, so list after
// that. It ends with ctx or Close.
func (h *Hub) Watch(ctx context.Context, of Watched) (*Watch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &Watch{c: make(chan struct{}, 1), hub: h, of: of} // one hint is as good as many
	w.C = w.c
	w.c <- struct{}{}
	h.add(w)
	w.cancel = context.AfterFunc(ctx, w.leave) // may run before it is assigned
	return w, nil
}

// Close ends the watch; the last one waits for the watcher's goroutine.
func (w *Watch) Close() {
	w.cancel()
	w.leave()
}

func (w *Watch) leave() {
	w.once.Do(func() { w.hub.remove(w) })
}

// Polling reports whether the system refused to watch, so that the directories are
// polled four times a second instead.
func (w *Watch) Polling() bool { return w.hub.polling(w) }

func (w *Watch) hint() {
	select {
	case w.c <- struct{}{}:
	default:
	}
}
