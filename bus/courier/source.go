package courier

import (
	"context"
	"errors"
	"sync"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/home"
)

// A File is the Source of a program whose events other processes, such as hooks, append
// to state/events/<agent>.jsonl.
type File struct {
	home    home.Dir
	id      agent.ID
	tail    *home.EventTail
	watch   *bus.Watch
	rotated time.Time
}

// rotates is how often the size of the event file is checked.
const rotates = time.Hour

// Events returns the Source of an agent's own events. It ends with ctx or Close.
func Events(ctx context.Context, h home.Dir, b *bus.Bus, id agent.ID) (*File, error) {
	watch, err := b.WatchEvents(ctx)
	if err != nil {
		return nil, err
	}
	return &File{home: h, id: id, tail: home.Events(h).TailAll(id), watch: watch}, nil
}

// C receives when an event file has changed, of any agent.
func (f *File) C() <-chan struct{} { return f.watch.C }

// Read reads what was appended, and once an hour moves a file that has grown large
// aside.
func (f *File) Read(fn func(Event)) error {
	err := f.tail.Read(func(e agent.Event) { fn(Event{Event: e}) })
	if time.Since(f.rotated) > rotates {
		f.rotated = time.Now()
		err = errors.Join(err, home.Events(f.home).Rotate(f.id))
	}
	return err
}

// Close ends the watch and closes the file.
func (f *File) Close() error {
	f.watch.Close()
	return f.tail.Close()
}

// A Queue is the Source of a program that this process drives. It has no record of the
// past, so its first Read returns nothing: everything put in is new. The zero Queue is
// not ready; see NewQueue.
type Queue struct {
	c     chan struct{}
	start string

	mu    sync.Mutex // guards the fields below
	begun bool       // the first Read is over
	list  []Event
}

// NewQueue makes an empty queue for the events of one start.
func NewQueue(start string) *Queue { return &Queue{c: make(chan struct{}, 1), start: start} }

// Put appends events, which one Read returns together. It never blocks.
func (q *Queue) Put(list ...Event) {
	now := time.Now().UnixMilli()
	q.mu.Lock()
	for _, e := range list {
		e.Start = q.start
		if e.MS == 0 {
			e.MS = now
		}
		if e.Event.Event == EventState && len(q.list) > 0 && q.list[len(q.list)-1].Event.Event == EventState {
			continue // one signal is as good as many
		}
		q.list = append(q.list, e)
	}
	q.mu.Unlock()
	q.wake()
}

func (q *Queue) wake() {
	select {
	case q.c <- struct{}{}:
	default:
	}
}

// C receives when there are events.
func (q *Queue) C() <-chan struct{} { return q.c }

// Read returns all events and empties the queue.
func (q *Queue) Read(fn func(Event)) error {
	q.mu.Lock()
	if !q.begun {
		q.begun = true
		q.mu.Unlock()
		q.wake()
		return nil
	}
	list := q.list
	q.list = nil
	q.mu.Unlock()
	for _, e := range list {
		fn(e)
	}
	return nil
}
