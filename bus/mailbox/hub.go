// This file reports when something may have changed in directories. It shares one
// system watcher among all watches, and polls if the system provides none.
//
// It only reads: a crash leaves nothing.

package mailbox

import (
	"path"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

const (
	lookEvery  = time.Second            // between two stats of every watched directory
	pollEvery  = 250 * time.Millisecond // the same if the system can't watch
	sweepEvery = 30 * time.Second       // between two hints to every watch, whatever was seen
)

// A Hub shares one system watcher among its watches: the system gives a user only 128
// of them. It runs while there is a watch. The exported fields must be set before the
// first.
type Hub struct {
	Open  func() (*fsnotify.Watcher, error)
	Boxes func() ([]string, error) // the directories for Each
	Above string                   // where those appear and disappear

	mu      sync.Mutex // guards the fields that follow
	watches map[*Watch]bool
	dirs    map[string]*watched // by absolute path
	watcher *fsnotify.Watcher   // nil if the system provides none
	stop    chan struct{}
	done    chan struct{}
}

// A watched is one directory being watched.
type watched struct {
	subs    map[*Watch]bool
	ino     uint64
	mtime   int64 // nanoseconds
	fresh   bool  // mtime was so recent that a later change may have the same
	noticed bool  // the system watches it
}

func (h *Hub) add(w *Watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watches == nil {
		h.watches = make(map[*Watch]bool)
		h.dirs = make(map[string]*watched)
		h.watcher, _ = h.Open() // none: polled, and Polling reports that
		h.stop, h.done = make(chan struct{}), make(chan struct{})
		go h.run(h.watcher, h.stop, h.done)
	}
	h.watches[w] = true
	h.subscribe(w, h.Boxes)
	h.look(time.Now())
}

func (h *Hub) remove(w *Watch) {
	h.mu.Lock()
	delete(h.watches, w)
	for name, d := range h.dirs {
		delete(d.subs, w)
		if len(d.subs) == 0 {
			if d.noticed {
				h.watcher.Remove(name)
			}
			delete(h.dirs, name)
		}
	}
	last := len(h.watches) == 0 && h.watches != nil
	var done chan struct{}
	if last {
		close(h.stop)
		done = h.done
		h.watches, h.dirs = nil, nil
	}
	h.mu.Unlock()
	if last {
		<-done
	}
}

func (h *Hub) polling(w *Watch) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range h.dirs {
		if d.subs[w] && d.ino != 0 && !d.noticed {
			return true
		}
	}
	return h.watcher == nil
}

// subscribe registers the watch for every directory that it covers now. The caller
// holds mu.
func (h *Hub) subscribe(w *Watch, boxes func() ([]string, error)) {
	add := func(name string) {
		d := h.dirs[name]
		if d == nil {
			d = &watched{subs: make(map[*Watch]bool)}
			h.dirs[name] = d
		}
		d.subs[w] = true
	}
	for _, name := range w.of.Dirs {
		add(name)
	}
	if len(w.of.Each) == 0 {
		return
	}
	add(h.Above)
	list, err := boxes()
	if err != nil {
		return // retried within a second
	}
	for _, box := range list {
		for _, name := range w.of.Each {
			add(box + "/" + name)
		}
	}
}

// run is the hub's goroutine, from the first watch to the last.
func (h *Hub) run(watcher *fsnotify.Watcher, stop, done chan struct{}) {
	defer close(done)
	var events chan fsnotify.Event
	lost := make(chan struct{}, 1)
	every := pollEvery
	if watcher != nil {
		drained := make(chan struct{})
		go drain(watcher.Errors, lost, drained)
		defer func() {
			watcher.Close()
			<-drained
		}()
		events = watcher.Events
		every = lookEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	for {
		select {
		case <-stop:
			return
		case e, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			h.event(e)
		case <-lost:
			h.hintAll()
		case <-sweep.C:
			h.hintAll()
		case now := <-tick.C:
			if h.tick(now) != every {
				every = lookEvery + pollEvery - every
				tick.Reset(every)
			}
		}
	}
}

// drain receives the watcher's errors, each of which may mean that events were lost.
// The watcher holds its own lock while it reports one, so the goroutine that adds
// directories can't be the receiver.
func drain(errs <-chan error, lost, drained chan<- struct{}) {
	defer close(drained)
	for range errs {
		select {
		case lost <- struct{}{}:
		default:
		}
	}
}

func (h *Hub) event(e fsnotify.Event) {
	if path.Base(e.Name)[0] == '.' {
		return // an envelope being written
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if d, ok := h.dirs[e.Name]; ok { // the directory itself has been removed
		h.lookAt(e.Name, d, time.Now())
	}
	d, ok := h.dirs[path.Dir(e.Name)]
	if !ok {
		return
	}
	comes := e.Has(fsnotify.Create) || e.Has(fsnotify.Write) || e.Has(fsnotify.Chmod)
	for w := range d.subs {
		if comes || !w.of.Arrivals {
			w.hint()
		}
	}
}

func (h *Hub) hintAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watches {
		w.hint()
	}
}

// tick stats all directories and returns when to do it again.
func (h *Hub) tick(now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	boxes := sync.OnceValues(h.Boxes)
	for w := range h.watches {
		h.subscribe(w, boxes)
	}
	return h.look(now)
}

// look stats every watched directory, hints at those that changed, and asks the system
// to watch those that it does not watch. The caller holds mu.
func (h *Hub) look(now time.Time) time.Duration {
	next := lookEvery
	for name, d := range h.dirs {
		h.lookAt(name, d, now)
		if d.ino != 0 && !d.noticed {
			next = pollEvery
		}
	}
	return next
}

func (h *Hub) lookAt(name string, d *watched, now time.Time) {
	var st unix.Stat_t
	if unix.Lstat(name, &st) != nil {
		st = unix.Stat_t{}
	}
	ino, mtime := st.Ino, st.Mtim.Nano()
	changed := ino != d.ino || mtime != d.mtime || d.fresh
	if ino != d.ino && d.noticed {
		h.watcher.Remove(name) // it watches a directory that is no longer here
		d.noticed = false
	}
	d.ino, d.mtime = ino, mtime
	age := now.UnixNano() - mtime
	d.fresh = ino != 0 && age > -int64(time.Second) && age < int64(50*time.Millisecond)
	if ino != 0 && !d.noticed && h.watcher != nil && h.watcher.Add(name) == nil {
		d.noticed = true
	}
	if changed {
		for w := range d.subs {
			w.hint()
		}
	}
}
