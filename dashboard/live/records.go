package live

import (
	"context"
	"fmt"
	"slices"

	"netsky/store"
)

// recordsVersion names the contents of a database at this data version.
func recordsVersion(db Reader, v int64) string { return versionOf(fmt.Appendf(nil, "%p %d", db, v)) }

// RecordsVersion returns the version of the records for [Known], or "" if they can't be
// read.
func (b *Broadcaster) RecordsVersion(ctx context.Context) string {
	db, err := b.o.Records()
	if err != nil {
		return ""
	}
	v, err := db.DataVersion(ctx)
	if err != nil {
		return ""
	}
	return recordsVersion(db, v)
}

// followRecords publishes changes of the records until ctx ends.
func (b *Broadcaster) followRecords(ctx context.Context, l *look) {
	f := recordFollower{b: b, look: l, known: new(recent)}
	b.poll(ctx, f.pass)
}

type recordFollower struct {
	b       *Broadcaster
	look    *look
	known   *recent // published last
	db      Reader  // the one that version belongs to; nil: read again
	version int64
}

func (f *recordFollower) pass(ctx context.Context) {
	db, err := f.b.o.Records()
	var v int64
	if err == nil {
		v, err = db.DataVersion(ctx)
	}
	if err == nil && db == f.db && v == f.version {
		return
	}
	if err == nil {
		err = f.read(ctx, db, recordsVersion(db, v))
	}
	if err != nil {
		f.db = nil
		f.failed(ctx, err)
		return
	}
	f.db, f.version = db, v // read before the logs, so that no change is missed
}

// read reads the new logs.
func (f *recordFollower) read(ctx context.Context, db Reader, version string) error {
	next := recent{book: f.known.book, name: version}
	if f.known.last > 0 {
		l, err := db.Logs(ctx, store.LogFilter{Forward: true, After: f.known.last - 1, Page: store.Page{Limit: keptLogs}})
		if err != nil {
			return err
		}
		continues := f.known.continuedBy(l.Items)
		if continues && l.Cursor == "" {
			next.logs = slices.Concat(f.known.logs, l.Items[1:]) // a new one: events have parts of the old
			f.publish(next)
			return nil
		}
		if !continues {
			next.book++
		}
	}
	l, err := db.Logs(ctx, store.LogFilter{Page: store.Page{Limit: keptLogs}})
	if err != nil {
		return err
	}
	slices.Reverse(l.Items)
	next.logs = l.Items
	f.publish(next)
	return nil
}

// continuedBy reports whether logs start with the last known one. Another database may
// have another log under its id.
func (r *recent) continuedBy(logs []store.Log) bool {
	return len(logs) > 0 && logs[0].ID == r.last && logs[0].Key == r.logs[len(r.logs)-1].Key
}

// failed publishes, once, that the records can't be read.
func (f *recordFollower) failed(ctx context.Context, err error) {
	if ctx.Err() != nil || f.known.fault == err.Error() {
		return
	}
	f.b.o.Log.Warn("follow records", "error", err)
	next := *f.known
	next.fault, next.name = err.Error(), ""
	f.publish(next)
}

func (f *recordFollower) publish(next recent) {
	if n := len(next.logs) - keptLogs; n > 0 {
		next.logs = slices.Clone(next.logs[n:])
	}
	if next.last = 0; len(next.logs) > 0 {
		next.last = next.logs[len(next.logs)-1].ID
	}
	f.known = &next
	f.b.mu.Lock()
	defer f.b.mu.Unlock()
	f.b.set(f.look, keyRecords, f.known)
}
