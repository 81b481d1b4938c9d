package dashboard

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"netsky/agent"
	"netsky/store"
)

const (
	keptLogs  = 256             // in memory, for browsers that come back
	sentLogs  = 50              // in one event; fewer than are kept, so that an event knows whether it has all
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

	version string // the event's
}

// recordsVersion names what a database holds while it has this data version.
func recordsVersion(db Reader, v int64) string { return versionOf(fmt.Appendf(nil, "%p %d", db, v)) }

// recent is what is known of the records.
type recent struct {
	known bool
	logs  []store.Log // the newest, oldest first
	last  int64
	book  int // counts the databases that they were read from, one after another
	fault string

	version string // of what was read
}

// since is the event for who knows the logs of a book up to an id.
func (r *recent) since(id int64, book int) Records {
	e := Records{Since: id, Last: r.last, Error: r.fault, version: r.version}
	switch {
	case id < 0: // it has just come, and knows what is there
		e.Since = r.last
	case id > r.last, book != r.book: // these are other records than it knew
		e.Since, e.More = 0, true
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
		err = f.read(ctx, db, recordsVersion(db, v))
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
func (f *recordFollower) read(ctx context.Context, db Reader, version string) error {
	known := f.look.rec // only this goroutine changes it
	if known.last > 0 {
		l, err := db.Logs(ctx, store.LogFilter{Forward: true, After: known.last - 1, Page: store.Page{Limit: keptLogs}})
		if err != nil {
			return err
		}
		if l.Cursor == "" && known.goesOn(l.Items) {
			next := known
			next.logs = slices.Concat(known.logs, l.Items[1:]) // a new one: events have parts of the old
			next.version = version
			f.publish(next)
			return nil
		}
		if !known.goesOn(l.Items) {
			known.book++
		}
	}
	l, err := db.Logs(ctx, store.LogFilter{Page: store.Page{Limit: keptLogs}})
	if err != nil {
		return err
	}
	slices.Reverse(l.Items)
	f.publish(recent{logs: l.Items, book: known.book, version: version})
	return nil
}

// goesOn reports whether logs begin with the last that is known. Another
// database may have another log under its id.
func (r *recent) goesOn(logs []store.Log) bool {
	return len(logs) > 0 && logs[0].ID == r.last && logs[0].Key == r.logs[len(r.logs)-1].Key
}

func (f *recordFollower) publish(next recent) {
	if n := len(next.logs) - keptLogs; n > 0 {
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
	next.known, next.fault, next.version = true, err.Error(), ""
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
	known := map[agent.ID]Agent{}
	for {
		known = h.agentsPass(ctx, l, known)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// agentsPass publishes the agents that are not as they are known.
func (h *hub) agentsPass(ctx context.Context, l *look, known map[agent.ID]Agent) map[agent.ID]Agent {
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
		now := make(map[agent.ID]Agent, len(list))
		for _, a := range list {
			if was, ok := known[a.ID]; !ok || was != a {
				h.put(l, keyAgent+string(a.ID), a)
			}
			now[a.ID] = a
		}
		for id := range known {
			if _, ok := now[id]; !ok {
				h.put(l, keyAgent+string(id), nil)
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
