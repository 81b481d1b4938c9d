// Package observe mirrors the bus into the records: every envelope in a mailbox becomes a
// message, and its directory the state of its delivery.
//
// The directories are the truth and the records follow. An [Observer] lists them,
// remembers which names it has recorded, and reads only new files; its watch and its ticks
// are hints to list again. So nothing is lost when the database fails, when the observer
// is not running, or when it is killed: a new one lists everything and reads each file that
// the records don't show to be unchanged, and recording twice changes nothing. What was
// pruned from a mailbox stays recorded.
//
// In the mailboxes it only lists and reads. It takes no lock, and a mailbox works the same with or without
// it.
//
// What becomes of a message from another host, that host is told by mail, before it is recorded:
// a crash in between tells it again, under the same id. What other hosts say of messages from
// here is in a file for each host, which is recorded too.
//
// It cannot know what happened between two looks: a message that was queued, claimed and
// delivered in the meantime is found delivered, with the times in its file.
package observe

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/internal/proc"
	"netsky/store"
)

const (
	restMin   = 50 * time.Millisecond // between two passes, so that a burst is one pass
	restShare = 4                     // and at least this many times the duration of the pass
	lookAgain = time.Second           // when something could not be settled
	retryMin  = time.Second           // after a failure, doubled each time
	retryMax  = 30 * time.Second
	fileEvery = time.Second // how often the database's file, and other hosts' reports, are checked while nothing else happens
)

// An Observer mirrors all mailboxes of a bus into a database. All fields but Log must be
// set before its first use. Its methods are safe for concurrent use; one Observer is
// enough.
type Observer struct {
	Bus *bus.Bus
	DB  *store.DB
	Log *slog.Logger // nil: silent

	mu    sync.Mutex // guards the fields below
	seed  maphash.Seed
	boxes map[agent.ID]*box // nil: no pass yet
	fresh int64             // DB.Replaced when boxes was created
	later bool              // something wants another look soon
	others
}

// Run mirrors until ctx ends: everything once, then changes. A failing database or
// directory is logged once and retried; Run returns only with ctx's error, or if no watch
// is possible at all.
func (o *Observer) Run(ctx context.Context) error {
	w, err := o.Bus.Watch(ctx, bus.Spot{Place: bus.Inbox}, bus.Spot{Place: bus.Claimed}, bus.Spot{Place: bus.Outbox},
		bus.Spot{Place: bus.Poison}) // where people edit and remove files by hand
	if err != nil {
		return err
	}
	defer w.Close()
	retry, failing := retryMin, false
	for {
		began := time.Now()
		later, err := o.sync(ctx, false)
		took := time.Since(began)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !failing {
			o.warn("observe", "error", err)
		}
		if err == nil && failing {
			o.warn("observe again")
			retry = retryMin
		}
		failing = err != nil
		hint, again := w.C, time.Duration(0)
		switch {
		case failing: // hints do not repair a database
			hint, again = nil, retry
			retry = min(2*retry, retryMax)
		case later:
			again = lookAgain
		}
		if !pause(ctx, max(restMin, restShare*took), nil) || !o.rest(ctx, again, hint) {
			return ctx.Err()
		}
	}
}

// rest waits for a hint, for d if that is not 0, or until the database's file has been
// removed or replaced, of which a quiet bus gives no hint. It reports whether to continue.
func (o *Observer) rest(ctx context.Context, d time.Duration, hint <-chan struct{}) bool {
	if d > 0 {
		return pause(ctx, d, hint)
	}
	o.mu.Lock()
	was := o.fresh
	o.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-hint:
			return true
		case <-time.After(proc.Tick(fileEvery)):
			if err := o.DB.Refresh(ctx); err != nil || o.DB.Replaced() != was || o.heard() {
				return ctx.Err() == nil // the next pass meets the error too
			}
		}
	}
}

// pause waits for a hint, or for d unless that is 0. It reports whether to continue.
func pause(ctx context.Context, d time.Duration, hint <-chan struct{}) bool {
	var end <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		end = t.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-hint:
	case <-end:
	}
	return true
}

func (o *Observer) warn(text string, args ...any) {
	if o.Log != nil {
		o.Log.Warn(text, args...)
	}
}

// Sync makes one pass: when it returns nil, everything that was in the directories when it
// was called is recorded, except files that are still being written or explained. A
// missing file is recorded as cancelled only by the second pass that misses it.
func (o *Observer) Sync(ctx context.Context) error {
	_, err := o.sync(ctx, true)
	return err
}

func (o *Observer) sync(ctx context.Context, all bool) (later bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.DB.Refresh(ctx); err != nil {
		return false, err
	}
	if o.boxes == nil || o.DB.Replaced() != o.fresh {
		o.boxes, o.fresh, o.seed = make(map[agent.ID]*box), o.DB.Replaced(), maphash.MakeSeed()
		o.others = others{}
	}
	o.later = false
	reports, herr := o.hear(all) // first, so that what they are about is found
	ids, err := o.Bus.All()
	if err != nil {
		return false, err
	}
	there := make(map[agent.ID]bool, len(ids))
	var errs []error
	for _, id := range ids {
		there[id] = true
		if o.boxes[id] == nil {
			o.boxes[id] = newBox(id)
		}
		err := o.pass(ctx, o.boxes[id])
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err != nil && !errors.Is(err, bus.ErrNoMailbox) {
			errs = append(errs, err)
		}
	}
	for id := range o.boxes {
		if !there[id] {
			delete(o.boxes, id)
		}
	}
	if len(errs) == 0 {
		errs = append(errs, o.believe(ctx, reports))
	}
	errs = append(errs, herr)
	if o.DB.Replaced() != o.fresh { // earlier records may be lost
		o.boxes, o.later = nil, true
	}
	return o.later, errors.Join(errs...)
}
