package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"golang.org/x/sys/unix"
)

// ErrClosed is what Add returns after Close.
var ErrClosed = errors.New("watcher is closed")

// A Death is one process's end, told under the key it was added with.
type Death struct {
	Key     string
	Process Process
}

// A Watcher tells deaths of processes, whether they are our children or not,
// each exactly once. It knows nothing of how they ended: who is no parent is
// not told. The caller must call Close.
type Watcher struct {
	poll   *poller
	deaths chan Death
	stop   chan struct{} // closed by Close
	done   chan struct{} // closed when run has returned

	mu      sync.Mutex // guards what follows
	seq     uint64
	closed  bool
	watches map[string]*watch
	gone    []Death // dead before they were added, not told yet
}

// A watch is one process that is still to die.
type watch struct {
	Death
	seq uint64
	fd  int
}

// NewWatcher starts a watcher. It takes one goroutine and one thread that
// sleeps in the kernel, and on Linux one descriptor for each process added.
func NewWatcher() (*Watcher, error) {
	p, err := newPoller()
	if err != nil {
		return nil, fmt.Errorf("watch processes: %w", err)
	}
	w := &Watcher{
		poll: p,
		// Unbuffered: what has not been taken yet waits in the kernel.
		deaths:  make(chan Death),
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
		watches: make(map[string]*watch),
	}
	go w.run()
	return w, nil
}

// Add has the process's death told under key. One that is dead already, whose
// number belongs to another by now, or whose birth is not known (Start 0: it is
// nobody) is told at once. A watch that had the key is dropped.
// It never blocks, also while nobody takes deaths.
func (w *Watcher) Add(key string, p Process) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	w.drop(key)
	w.seq++
	x := &watch{Death: Death{key, p}, seq: w.seq, fd: -1}
	err := w.poll.add(x)
	if err == nil {
		// Only now that the number is held fast does its birth say whose it is.
		var now Process
		now, err = Find(p.PID)
		if err == nil && (!p.Named() || now.Start != p.Start) {
			err = fs.ErrNotExist
		}
		if err != nil {
			w.poll.remove(x)
		}
	}
	switch {
	case err == nil:
		w.watches[key] = x
		return nil
	case errors.Is(err, unix.ESRCH) || errors.Is(err, fs.ErrNotExist):
		w.gone = append(w.gone, x.Death)
		w.poll.wakeUp()
		return nil
	}
	return fmt.Errorf("watch process %d: %w", p.PID, err)
}

// Remove ends the watch under key, if there is one. A death that has been
// noticed already may still be told.
func (w *Watcher) Remove(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(key)
}

// Deaths is where they are told. It is closed by Close.
func (w *Watcher) Deaths() <-chan Death { return w.deaths }

// Close ends all watches and waits for the goroutine.
func (w *Watcher) Close() error {
	w.mu.Lock()
	first := !w.closed
	w.closed = true
	w.mu.Unlock()
	if first {
		close(w.stop)
		w.poll.wakeUp()
	}
	<-w.done
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.watches {
		w.drop(key)
	}
	if !first {
		return nil
	}
	return w.poll.close()
}

// drop forgets the watch or the untold death under key; w.mu is held.
func (w *Watcher) drop(key string) {
	if x := w.watches[key]; x != nil {
		delete(w.watches, key)
		w.poll.remove(x)
	}
	for i, d := range w.gone {
		if d.Key == key {
			w.gone = append(w.gone[:i], w.gone[i+1:]...)
			return
		}
	}
}

// signal signals the process under key, if there is one that lives.
func (w *Watcher) signal(key string, sig unix.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if x := w.watches[key]; x != nil {
		w.poll.signal(x, sig)
	}
}

// run owns the sending side of deaths.
func (w *Watcher) run() {
	defer close(w.done)
	defer close(w.deaths)
	for {
		events, err := w.poll.wait()
		if err != nil {
			return // the descriptor is ours and open: can't be
		}
		for _, d := range w.take(events) {
			select {
			case w.deaths <- d:
			case <-w.stop:
				return
			}
		}
		select {
		case <-w.stop:
			return
		default:
		}
	}
}

// take removes from the watches what the events are about. An event whose
// watch is gone means nothing.
func (w *Watcher) take(events []event) []Death {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.gone
	w.gone = nil
	for _, e := range events {
		for key, x := range w.watches {
			if e.of(x) {
				delete(w.watches, key)
				w.poll.remove(x)
				list = append(list, x.Death)
			}
		}
	}
	return list
}
