package chatdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"netsky/phone/chat"
)

// A mark says that all rows up to one were there at that time.
type mark struct {
	row int64
	at  time.Time
}

// Next waits until messages arrived after the cursor, at most Options.Wait, and returns them. An
// empty cursor begins at the database's end. The error is a *chat.Degraded if the database can't
// be read; a call that follows one rests first, longer from time to time, so that the caller may
// call again at once.
func (d *DB) Next(ctx context.Context, from string) (chat.Batch, error) {
	if err := d.rest(ctx); err != nil {
		return chat.Batch{}, err
	}
	b, err := d.next(ctx, from)
	var degraded *chat.Degraded
	switch {
	case err == nil:
		d.failures = 0
	case errors.As(err, &degraded):
		d.failures++
		d.failed = d.o.Now()
	}
	return b, err
}

// rest waits as the failures before this call demand.
func (d *DB) rest(ctx context.Context) error {
	if d.failures == 0 {
		return nil
	}
	pause := min(d.o.Rest<<min(d.failures-1, 16), longestRest)
	return d.pause(ctx, min(pause, pause-d.o.Now().Sub(d.failed)))
}

func (d *DB) pause(ctx context.Context, t time.Duration) error {
	timer := time.NewTimer(max(t, 0))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-d.closed:
		return errClosed
	case <-timer.C:
		return nil
	}
}

func (d *DB) next(ctx context.Context, from string) (chat.Batch, error) {
	cur, note := cursor{}, ""
	if from != "" {
		var err error
		if cur, err = parseCursor(from); err != nil {
			note = fmt.Sprintf("chat.db: %v; begins at the newest message", err)
		}
	}
	if from == "" || note != "" {
		return d.begin(ctx, note)
	}
	end := time.Now().Add(d.o.Wait)
	looked := false // at this cursor
	for wake := d.o.Now(); ; {
		changed, err := d.changed(ctx)
		if err != nil {
			return chat.Batch{}, err
		}
		if changed || !looked || !d.o.Now().Before(wake) {
			s := scan{db: d, cur: cur.clone(), now: d.o.Now()}
			if err := d.view(ctx, s.run); err != nil {
				return chat.Batch{}, err
			}
			looked, wake = true, s.wake
			if len(s.out) > 0 || len(s.notes) > 0 || s.moved {
				d.active = s.now
				return chat.Batch{Messages: s.out, Cursor: s.cur.String(), Notes: s.notes}, nil
			}
		}
		left := time.Until(end)
		if left <= 0 {
			return chat.Batch{Cursor: cur.String()}, nil
		}
		if err := d.pause(ctx, min(left, d.every(wake))); err != nil {
			return chat.Batch{}, err
		}
	}
}

// every returns how long to wait for the next look.
func (d *DB) every(wake time.Time) time.Duration {
	t := d.o.Every
	if d.o.Now().Sub(d.active) < activeFor {
		t = min(t, activeEvery)
	}
	return min(t, max(wake.Sub(d.o.Now()), time.Millisecond))
}

// changed reports whether the database may have changed since the last call.
func (d *DB) changed(ctx context.Context) (bool, error) {
	changed := false
	err := d.use(ctx, func(c *conn) error {
		v, err := c.dataVersion(ctx)
		if err != nil {
			return err
		}
		another := c.number != d.seen // a new connection, which says nothing of what goes on
		changed = another || v != d.version
		d.seen, d.version = c.number, v
		if changed && !another {
			d.active = d.o.Now()
		}
		return nil
	})
	if err != nil {
		d.seen = 0 // whatever the failed look was to find is looked for again
	}
	return changed, err
}

// begin returns a cursor of the database's end.
func (d *DB) begin(ctx context.Context, note string) (b chat.Batch, err error) {
	err = d.view(ctx, func(v *view) error {
		cur, err := v.end()
		b.Cursor = cur.String()
		return err
	})
	if note != "" {
		b.Notes = append(b.Notes, note)
	}
	return b, err
}

// noted adds what was there at a time.
func (d *DB) noted(row int64, at time.Time) {
	if n := len(d.marks); n > 0 && row < d.marks[n-1].row {
		d.marks = d.marks[:0] // another database
	}
	if n := len(d.marks); n == 0 || row > d.marks[n-1].row {
		d.marks = append(d.marks, mark{row, at})
	}
	// Of those that are older than all delays, the last one is enough.
	old := 0
	for old+1 < len(d.marks) && at.Sub(d.marks[old+1].at) > emptyAfter {
		old++
	}
	d.marks = slices.Delete(d.marks, 0, old)
}

// since returns when a row was first known to be there.
func (d *DB) since(row int64, now time.Time) time.Time {
	for _, m := range d.marks {
		if row <= m.row {
			return m.at
		}
	}
	return now
}
