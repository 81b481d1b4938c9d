package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"

	"netsky/agent"
)

// Levels of a log, in the words of log/slog.
const (
	LevelDebug = "DEBUG"
	LevelInfo  = "INFO"
	LevelWarn  = "WARN"
	LevelError = "ERROR"
)

// A Log is one event that someone may want to read later. Its ID grows and is never
// reused: it is the event id of the dashboard.
type Log struct {
	ID     int64          `json:"id"`
	Key    string         `json:"key,omitempty"` // the same for the same log added twice
	Time   Time           `json:"time"`
	Level  string         `json:"level"`
	Part   string         `json:"part"` // of netsky: "up", "observe", "watchdog"
	Actor  agent.ID       `json:"actor,omitempty"`
	About  string         `json:"about,omitempty"` // any id
	Text   string         `json:"text"`
	Fields map[string]any `json:"fields,omitempty"`
}

// AddLog records a log. Without a Key it gets one; applied again it changes nothing. An
// empty Level is LevelInfo; ID is ignored.
type AddLog Log

func (AddLog) name() string { return "add_log" }

func (l AddLog) stamped(now Time) Op {
	stamp(&l.Time, now)
	stampKey(&l.Key)
	if l.Level == "" {
		l.Level = LevelInfo
	}
	return l
}

func (l AddLog) apply(t *tx) error {
	if l.Key == "" {
		return fmt.Errorf("%w: log without a key", errOp)
	}
	fields, err := toJSON(l.Fields)
	if err != nil {
		return fmt.Errorf("%w: log %q: %w", errOp, l.Text, err)
	}
	return t.exec(`INSERT INTO logs (key, time, level, part, actor, about, text, fields) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (key) DO NOTHING`, l.Key, l.Time, l.Level, l.Part, l.Actor, l.About, l.Text, fields)
}

// CountLog is AddLog for a log whose text changes while something is counted: applied again
// it replaces the text.
type CountLog AddLog

func (CountLog) name() string { return "count_log" }

func (l CountLog) stamped(now Time) Op { return CountLog(AddLog(l).stamped(now).(AddLog)) }

func (l CountLog) apply(t *tx) error {
	if err := AddLog(l).apply(t); err != nil {
		return err
	}
	return t.exec("UPDATE logs SET text = ? WHERE key = ?", l.Text, l.Key)
}

const logColumns = "id, key, time, level, part, actor, about, text, fields"

func scanLog(r *sql.Rows) (l Log, err error) {
	var fields string
	err = r.Scan(&l.ID, &l.Key, &l.Time, &l.Level, &l.Part, &l.Actor, &l.About, &l.Text, &fields)
	if err == nil {
		err = fromJSON(fields, &l.Fields)
	}
	return l, err
}

// A LogFilter selects logs; empty fields match all.
type LogFilter struct {
	Forward bool  // the oldest first, of those with an ID greater than After
	After   int64 // may be 0; ignored without Forward
	Level   string
	Part    string // also what other hosts have told of theirs, like watchdog@build1
	Own     bool   // without what other hosts have told
	Actor   agent.ID
	About   string
	Text    string // contained in the text
	Page
}

// Log returns the log with that ID.
func (db History) Log(ctx context.Context, id int64) (Log, error) {
	return first(ctx, db.read.Load(), scanLog, "log "+strconv.FormatInt(id, 10), "SELECT "+logColumns+" FROM logs WHERE id = ?", id)
}

// Logs lists logs by ID, the newest first unless the filter says otherwise.
func (db History) Logs(ctx context.Context, f LogFilter) (List[Log], error) {
	return logs(ctx, db.read.Load(), f)
}

func logs(ctx context.Context, q Querier, f LogFilter) (List[Log], error) {
	var w where
	w.is("level = ?", f.Level)
	if f.Own {
		w.add("instr(part, '@') = 0")
	}
	if f.Part != "" {
		w.add("(part = ? OR substr(part, 1, length(?) + 1) = ? || '@')", f.Part, f.Part, f.Part)
	}
	w.is("actor = ?", string(f.Actor))
	w.is("about = ?", f.About)
	w.is("instr(text, ?) > 0", f.Text)
	order, beyond := " ORDER BY id DESC", "id < ?"
	if f.Forward {
		order, beyond = " ORDER BY id", "id > ?"
		w.add(beyond, f.After)
	}
	if f.Cursor != "" {
		id, err := strconv.ParseInt(f.Cursor, 10, 64)
		if err != nil {
			return List[Log]{}, badCursor(f.Cursor)
		}
		w.add(beyond, id)
	}
	n := f.limit()
	found, err := Collect(ctx, q, scanLog, "SELECT "+logColumns+" FROM logs"+w.String()+order+" LIMIT "+strconv.Itoa(n+1), w.args...)
	if err != nil {
		return List[Log]{}, err
	}
	l := List[Log]{Items: found}
	if len(found) > n {
		l.Items = slices.Clip(found[:n])
		l.Cursor = strconv.FormatInt(l.Items[n-1].ID, 10)
	}
	return l, nil
}

// LastLog returns the greatest ID; 0 if there is none.
func (db History) LastLog(ctx context.Context) (id int64, err error) {
	var seq sql.NullInt64
	err = db.read.Load().QueryRowContext(ctx, "SELECT max(id) FROM logs").Scan(&seq)
	return seq.Int64, err
}
