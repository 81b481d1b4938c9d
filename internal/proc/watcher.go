package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"golang.org/x/sys/unix"
)

// ErrClosed is returned by Add after Close.
var ErrClosed = errors.New("watcher is closed")

// A Death is the end of one process, with the key under which it was added.
type Death struct {
	Key     string
	Process Process
}

// A Watcher reports deaths of processes, whether they are children of this one or not,
// each exactly once. It does not know how they ended: only a parent does. The caller
// must call Close.
type Watcher struct {
	poll   *poller
	deaths chan Death
	stop   chan struct{} // closed by Close
	done   chan struct{} // closed when run has returned

	mu      sync.Mutex // guards the fields below
	seq     uint64
	closed  bool
	watches map[string]*watch
	gone    []Death // dead before they were added, not reported yet
}

// A watch is one process that has not died yet.
type watch struct {
	Death
	seq uint64
	fd  int
}

// NewWatcher starts a watcher. It uses one goroutine and one thread that sleeps in the
// kernel, and on Linux one descriptor for each process added.
func NewWatcher() (*Watcher, error) {
	p, err := newPoller()
	if err != nil {
		return nil, fmt.Errorf("watch processes: %w", err)
	}
	w := &Watcher{
		poll: p,
		// Unbuffered: deaths that have not been received yet wait in the kernel.
		deaths:  make(chan Death),
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
		watches: make(map[string]*watch),
	}
	go w.run()
	return w, nil
}

// Add has the process's death reported under key. If it is dead already, its number
// belongs to another process by now, or its birth is unknown (Start 0: it is nobody),
// its death is reported at once. A watch that had the key is dropped. Add never blocks,
// even if nobody receives deaths.
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
		// The birth identifies the process only now that the pidfd holds it.
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

// Remove ends the watch under key, if there is one. A death that has been noticed
// already may still be reported.
func (w *Watcher) Remove(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(key)
}

// Deaths returns the channel of deaths. Close closes it.
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

// drop forgets the watch or the unreported death under key; the caller holds mu.
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

// signal signals the process under key, if there is one alive.
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
			return // the descriptor is open and ours: this can't happen
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

// take removes the watches that the events concern. An event without a watch means
// nothing.
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
