package watch

import (
	"context"
	"sync"
)

// Of is what a watch looks at.
type Of struct {
	Dirs []string // directories
	Each []string // names of directories below each of the hub's boxes, also later ones
	// Arrivals: only what comes into a directory counts. Whoever takes the files
	// out of it need not be told of that.
	Arrivals bool
}

// A Watch says that something may have changed in the directories it looks at.
// It is a hint: whoever gets one lists again. A first hint waits from the
// beginning, one comes every 30 s in any case, and hints that nobody has taken
// become one.
type Watch struct {
	C <-chan struct{}

	c   chan struct{}
	hub *Hub
	of  Of

	once   sync.Once
	cancel func() bool
}

// Watch begins to look. When it returns, every later change is announced, so list
// afterwards. It ends with ctx or Close.
func (h *Hub) Watch(ctx context.Context, of Of) (*Watch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &Watch{c: make(chan struct{}, 1), hub: h, of: of} // one hint says as much as many
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

// Polling reports whether the system would not watch, so that the directories
// are looked at four times a second instead.
func (w *Watch) Polling() bool { return w.hub.polling(w) }

func (w *Watch) hint() {
	select {
	case w.c <- struct{}{}:
	default:
	}
}
