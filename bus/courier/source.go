package courier

import (
	"context"
	"errors"
	"sync"
	"time"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus"
)

// A File is the Source of a program whose events other processes note in
// state/events/<agent>.jsonl, such as hooks.
type File struct {
	home    home.Dir
	id      agent.ID
	tail    *home.EventTail
	watch   *bus.Watch
	rotated time.Time
}

// rotates is how often the file of events is looked at for its size.
const rotates = time.Hour

// Events is the Source of an agent's own events. It ends with ctx or Close.
func Events(ctx context.Context, h home.Dir, b *bus.Bus, id agent.ID) (*File, error) {
	watch, err := b.WatchEvents(ctx)
	if err != nil {
		return nil, err
	}
	return &File{home: h, id: id, tail: h.AllEvents(id), watch: watch}, nil
}

// C receives when a file of events has changed, of whichever agent.
func (f *File) C() <-chan struct{} { return f.watch.C }

// Read reads what was appended, and moves a file that has grown large aside once
// an hour.
func (f *File) Read(fn func(Event)) error {
	err := f.tail.Read(func(e agent.Event) { fn(Event{Event: e}) })
	if time.Since(f.rotated) > rotates {
		f.rotated = time.Now()
		err = errors.Join(err, f.home.RotateEvents(f.id))
	}
	return err
}

// Close ends the watch and closes the file.
func (f *File) Close() error {
	f.watch.Close()
	return f.tail.Close()
}

// A Queue is the Source of a program that is driven by this process. It has no
// record of the past, so its first Read brings nothing: what was put before is
// news. The zero Queue is not ready; see NewQueue.
type Queue struct {
	c     chan struct{}
	start string

	mu    sync.Mutex // guards what follows
	begun bool       // the first Read is over
	list  []Event
}

// NewQueue makes an empty queue for the events of one start.
func NewQueue(start string) *Queue { return &Queue{c: make(chan struct{}, 1), start: start} }

// Put appends events, which one Read brings together. It never waits.
func (q *Queue) Put(list ...Event) {
	now := time.Now().UnixMilli()
	q.mu.Lock()
	for _, e := range list {
		e.Start = q.start
		if e.MS == 0 {
			e.MS = now
		}
		if e.Event.Event == EventState && len(q.list) > 0 && q.list[len(q.list)-1].Event.Event == EventState {
			continue // one says as much as many
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

// Read takes all events out of the queue.
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
