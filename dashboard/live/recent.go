package live

import (
	"encoding/json"

	"netsky/store"
)

const (
	keptLogs = 256 // in memory, for browsers that come back
	sentLogs = 50  // in one event; fewer than are kept, so that an event knows whether it has all
)

// Records is the event for changed records: the logs after Since, the oldest first. If
// More is set there are others after Since, which GET /api/logs?after= returns. An
// event without logs reports a change that left no log entry.
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
	last  int64       // their last id; -1 for a browser that has just connected
	book  int         // counts the databases that they were read from
	fault string
	name  string // its version
}

func (r *recent) base() value     { return &recent{last: r.last, book: r.book} }
func (r *recent) version() string { return r.name }

func (r *recent) encode(had value) []byte {
	e := r.since(had.(*recent))
	data, err := json.Marshal(e)
	if err != nil { // a log's fields; they were parsed from JSON
		data, _ = json.Marshal(Records{Since: e.Since, Last: e.Last, Logs: []store.Log{}, More: true})
	}
	return data
}

// since returns the event for a browser that has had another.
func (r *recent) since(had *recent) Records {
	e := Records{Since: had.last, Last: r.last, Error: r.fault}
	switch {
	case had.last < 0: // it has just connected, and has what is there
		e.Since = r.last
	case had.last > r.last, had.book != r.book: // different records than the browser had
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
