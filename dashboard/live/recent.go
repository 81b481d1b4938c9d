package live

import (
	"encoding/json"

	"netsky/store"
)

const (
	keptLogs = 256 // in memory, for browsers that come back
	sentLogs = 50  // in one event; fewer than are kept, so that an event knows whether it has all
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

// recent is a value: what is known of the records.
type recent struct {
	logs  []store.Log // the newest, oldest first
	last  int64       // their last; of a browser that has just come, -1
	book  int         // counts the databases that they were read from, one after another
	fault string
	name  string // its version
}

func (r *recent) base() value     { return &recent{last: r.last, book: r.book} }
func (r *recent) version() string { return r.name }

func (r *recent) encode(had value) []byte {
	e := r.since(had.(*recent))
	data, err := json.Marshal(e)
	if err != nil { // a log's fields; they came out of JSON
		data, _ = json.Marshal(Records{Since: e.Since, Last: e.Last, Logs: []store.Log{}, More: true})
	}
	return data
}

// since is the event for a browser that has had another.
func (r *recent) since(had *recent) Records {
	e := Records{Since: had.last, Last: r.last, Error: r.fault}
	switch {
	case had.last < 0: // it has just come, and knows what is there
		e.Since = r.last
	case had.last > r.last, had.book != r.book: // these are other records than it knew
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
