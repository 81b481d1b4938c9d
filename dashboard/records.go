package dashboard

import (
	"context"
	"slices"
	"strconv"
	"time"

	"netsky/store"
)

const (
	keptLogs  = 256             // in memory, for browsers that come back
	sentLogs  = 50              // in one event
	readLimit = 5 * time.Second // for what is read of the records or the agents
)

// Records is the event that says that records have changed: the logs after
// Since, the oldest first. If More is set there are others after Since, which
// GET /api/logs?after= has. An event without logs says that something changed
// that left none.
type Records struct {
	Since int64       `json:"since"`
	Last  int64       `json:"last"` // the event's id
	Logs  []store.Log `json:"logs"`
	More  bool        `json:"more,omitempty"`
	Error string      `json:"error,omitempty"` // why they can't be read
}

// recent is what is known of the records.
type recent struct {
	known bool
	logs  []store.Log // the newest, oldest first
	from  int64       // every log with a greater id is among them
	last  int64
	fault string
}

// since is the event for who knows the logs up to an id.
func (r *recent) since(id int64) Records {
	e := Records{Since: id, Last: r.last, Error: r.fault}
	switch {
	case id < 0: // it has just come, and knows what is there
		e.Since = r.last
	case id > r.last: // these are other records than it knew
		e.Since, e.More = 0, true
	default:
		e.More = id < r.from
	}
	i := len(r.logs)
	for i > 0 && r.logs[i-1].ID > e.Since {
		i--
	}
	e.Logs = r.logs[i:len(r.logs):len(r.logs)]
	if n := len(e.Logs) - sentLogs; n > 0 {
		e.Logs, e.More = e.Logs[n:], true
	}
	if e.Logs == nil {
		e.Logs = []store.Log{}
	}
	return e
}

// followRecords looks for changes until ctx ends.
func (h *hub) followRecords(ctx context.Context, l *look) {
	tick := time.NewTicker(h.o.Poll)
	defer tick.Stop()
	for f := (recordFollower{hub: h, look: l}); ; {
		f.pass(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

type recordFollower struct {
	hub     *hub
	look    *look
	db      Reader // the one that version is of
	version int64
}

func (f *recordFollower) pass(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	db, err := f.hub.o.Records()
	if err != nil {
		f.db = nil
		f.failed(err)
		return
	}
	v, err := db.DataVersion(ctx)
	if err == nil && db == f.db && v == f.version {
		return
	}
	if err == nil {
		err = f.read(ctx, db)
	}
	if err != nil {
		if f.db = nil; ctx.Err() == nil {
			f.failed(err)
		}
		return
	}
	f.db, f.version = db, v // read before the logs were, so that none is missed
}

// read reads the logs that have come.
func (f *recordFollower) read(ctx context.Context, db Reader) error {
	next := f.look.rec // only this goroutine changes it
	if n := len(next.logs); next.last > 1 && db == f.db {
		l, err := db.Logs(ctx, store.LogFilter{After: next.last - 1, Page: store.Page{Limit: keptLogs}})
		if err != nil {
			return err
		}
		// Where the last log is not the one it was, it is another database.
		if l.Cursor == "" && len(l.Items) > 0 && l.Items[0].Key == next.logs[n-1].Key {
			next.logs = slices.Concat(next.logs, l.Items[1:]) // a new one: events have parts of the old
			f.publish(next)
			return nil
		}
	}
	l, err := db.Logs(ctx, store.LogFilter{Page: store.Page{Limit: keptLogs}})
	if err != nil {
		return err
	}
	slices.Reverse(l.Items)
	next = recent{logs: l.Items}
	if l.Cursor != "" {
		next.from = l.Items[0].ID - 1
	}
	f.publish(next)
	return nil
}

func (f *recordFollower) publish(next recent) {
	if n := len(next.logs) - keptLogs; n > 0 {
		next.from = next.logs[n].ID - 1
		next.logs = slices.Clone(next.logs[n:])
	}
	if next.last = 0; len(next.logs) > 0 {
		next.last = next.logs[len(next.logs)-1].ID
	}
	next.known, next.fault = true, ""
	f.set(next)
}

// failed says once that the records can't be read.
func (f *recordFollower) failed(err error) {
	next := f.look.rec
	if next.known && next.fault == err.Error() {
		return
	}
	f.hub.o.Log.Warn("follow records", "error", err)
	next.known, next.fault = true, err.Error()
	f.set(next)
}

func (f *recordFollower) set(next recent) {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	f.look.rec = next
	for c := range f.hub.clients {
		c.mark(keyRecords)
	}
}

// followAgents looks how the agents are, and what waits, until ctx ends.
func (h *hub) followAgents(ctx context.Context, l *look) {
	tick := time.NewTicker(h.o.Poll)
	defer tick.Stop()
	known := map[string]bool{}
	for {
		known = h.agentsPass(ctx, l, known)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (h *hub) agentsPass(ctx context.Context, l *look, known map[string]bool) map[string]bool {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	list, err := h.o.Agents.Agents(ctx)
	switch {
	case ctx.Err() != nil && err != nil:
		return known
	case err != nil:
		h.put(l, keyAgents, map[string]string{"error": err.Error()})
	default:
		h.put(l, keyAgents, nil)
		now := make(map[string]bool, len(list))
		for _, a := range list {
			key := keyAgent + string(a.ID)
			now[key] = true
			h.put(l, key, a)
		}
		for key := range known {
			if !now[key] {
				h.put(l, key, nil)
			}
		}
		known = now
	}
	if waiting, err := h.approvals(); err == nil {
		h.put(l, keyApprovals, waiting)
	}
	return known
}

func appendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }
