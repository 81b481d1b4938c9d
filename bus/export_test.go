package bus

import (
	"errors"
	"time"

	"github.com/fsnotify/fsnotify"
)

// LastClaim is when the last claim's rename had returned.
func (r *Receiver) LastClaim() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lastClaim
}

// Prod asks the receiver to look now, as it does within a second of a failure.
func (r *Receiver) Prod() { r.prod() }

// StealEvents makes a bus whose system watches and whose events get lost,
// every one, until stop is called.
func (b *Bus) StealEvents() (stop func()) {
	done := make(chan struct{})
	b.hub.Open = func() (*fsnotify.Watcher, error) {
		w, err := fsnotify.NewWatcher()
		if err != nil {
			return nil, err
		}
		stolen := w.Events
		w.Events = make(chan fsnotify.Event)
		go func() {
			for {
				select {
				case _, ok := <-stolen:
					if !ok {
						return
					}
				case <-done:
					return
				}
			}
		}()
		return w, nil
	}
	return func() { close(done) }
}

// NoInotify makes a bus whose system refuses to watch anything.
func (b *Bus) NoInotify() {
	b.hub.Open = func() (*fsnotify.Watcher, error) { return nil, errors.New("no watches left") }
}
