package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"netsky/agent"
)

// EndedUnseen is the reason of a session whose end nobody saw: it was still open on record
// when the same actor was started again.
const EndedUnseen = "ended unseen"

// A Session is one start of one actor, from the spawn to its end.
type Session struct {
	Start     string      `json:"start"` // the start id
	Actor     agent.ID    `json:"actor"`
	Runtime   string      `json:"runtime"`
	Tmux      string      `json:"tmux"` // the tmux session's name
	PID       int         `json:"pid,omitempty"`
	PIDStart  int64       `json:"pid_start,omitempty"`
	Thread    string      `json:"thread,omitempty"`
	State     agent.State `json:"state"`
	Status    *int        `json:"status,omitempty"` // exit status
	Signal    string      `json:"signal,omitempty"`
	Reason    string      `json:"reason,omitempty"` // of the end
	LastLines string      `json:"last_lines,omitempty"`
	Started   Time        `json:"started"`
	Changed   Time        `json:"changed,omitzero"` // when State was last reported
	Ended     Time        `json:"ended,omitzero"`   // zero: open

	seq int64
}

// StartSession records a start. Older sessions of the actor that are still open are closed
// as EndedUnseen. Applied again it fills in what was empty. It also records the actor if
// needed. End fields are ignored.
type StartSession Session

func (StartSession) name() string { return "start_session" }

func (s StartSession) stamped(now Time) Op {
	stamp(&s.Started, now)
	stamp(&s.Changed, s.Started)
	if s.State == "" {
		s.State = agent.Starting
	}
	return s
}

func (s StartSession) apply(t *tx) error {
	if s.Start == "" {
		return fmt.Errorf("%w: %s: no start id", errOp, s.Actor)
	}
	if err := knownActor(t, s.Actor, s.Runtime, s.Started); err != nil {
		return err
	}
	if err := t.exec(`INSERT INTO sessions (start, actor, runtime, tmux, pid, pid_start, thread, state, started, changed)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (start) DO UPDATE SET
			runtime   = iif(runtime = '', excluded.runtime, runtime),
			tmux      = iif(tmux = '', excluded.tmux, tmux),
			pid_start = iif(pid = 0, excluded.pid_start, pid_start),
			pid       = iif(pid = 0, excluded.pid, pid),
			thread    = iif(thread = '', excluded.thread, thread),
			started   = min(started, excluded.started)`,
		s.Start, s.Actor, s.Runtime, s.Tmux, s.PID, s.PIDStart, s.Thread, s.State, s.Started, s.Changed); err != nil {
		return err
	}
	return closeUnseen(t, s.Actor)
}

// closeUnseen closes the actor's open sessions except the newest, each at the moment the
// next one started, in whatever order the starts are recorded.
func closeUnseen(t *tx, id agent.ID) error {
	return t.exec(`UPDATE sessions AS s SET reason = ?2, state = ?3,
			ended = (SELECT min(n.started) FROM sessions n WHERE n.actor = ?1 AND (n.started, n.seq) > (s.started, s.seq))
		WHERE actor = ?1 AND ended = 0
			AND EXISTS (SELECT 1 FROM sessions n WHERE n.actor = ?1 AND (n.started, n.seq) > (s.started, s.seq))`,
		id, EndedUnseen, agent.Down)
}

// knownActor makes the row that others refer to.
func knownActor(t *tx, id agent.ID, runtime string, now Time) error {
	if _, err := agent.ParseAddress(string(id)); err != nil {
		return fmt.Errorf("%w: %w", errOp, err)
	}
	return t.exec(`INSERT INTO actors (id, role, runtime, created, updated) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (id) DO NOTHING`, id, id.Role(), runtime, now, now)
}

// SessionState updates an open session: its state, or what has been learned of it since.
// An empty field keeps the stored value. A report older than the last one changes no
// state, and one of an ended session nothing at all; nor does one of a start that is not
// on record, unless Actor is given.
type SessionState struct {
	Start    string      `json:"start"`
	Actor    agent.ID    `json:"actor,omitempty"`
	State    agent.State `json:"state,omitempty"`
	PID      int         `json:"pid,omitempty"`
	PIDStart int64       `json:"pid_start,omitempty"`
	Thread   string      `json:"thread,omitempty"`
	Time     Time        `json:"time"`
}

func (SessionState) name() string { return "session_state" }

func (s SessionState) stamped(now Time) Op { stamp(&s.Time, now); return s }

func (s SessionState) apply(t *tx) error {
	if err := knownSession(t, s.Start, s.Actor, s.Time); err != nil {
		return err
	}
	return t.exec(`UPDATE sessions SET
			state     = CASE WHEN ?2 <> '' AND ?3 >= changed THEN ?2 ELSE state END,
			changed   = CASE WHEN ?2 <> '' THEN max(changed, ?3) ELSE changed END,
			pid       = iif(?4 <> 0, ?4, pid),
			pid_start = iif(?4 <> 0, ?5, pid_start),
			thread    = iif(?6 <> '', ?6, thread)
		WHERE start = ?1 AND ended = 0`,
		s.Start, s.State, s.Time, s.PID, s.PIDStart, s.Thread)
}

// EndSession is the end of a session: how its program ended and its last lines. The first
// observed end stays; a later one fills in what that left empty. State is Down if the end
// was wanted, else Dead; empty is Dead. For a start that is not on record it changes
// nothing, unless Actor is given.
type EndSession struct {
	Start     string      `json:"start"`
	Actor     agent.ID    `json:"actor,omitempty"`
	State     agent.State `json:"state"`
	Status    *int        `json:"status,omitempty"` // exit status; nil: unknown, or a signal
	Signal    string      `json:"signal,omitempty"`
	Reason    string      `json:"reason,omitempty"`
	LastLines string      `json:"last_lines,omitempty"`
	Time      Time        `json:"time"`
}

func (EndSession) name() string { return "end_session" }

func (e EndSession) stamped(now Time) Op {
	stamp(&e.Time, now)
	if e.State == "" {
		e.State = agent.Dead
	}
	return e
}

func (e EndSession) apply(t *tx) error {
	if err := knownSession(t, e.Start, e.Actor, e.Time); err != nil {
		return err
	}
	if err := t.exec(`UPDATE sessions SET state = ?2, reason = '', ended = ?3
		WHERE start = ?1 AND (ended = 0 OR reason = ?4)`, e.Start, e.State, e.Time, EndedUnseen); err != nil {
		return err
	}
	return t.exec(`UPDATE sessions SET
			status     = iif(status IS NULL AND signal = '', ?2, status),
			signal     = iif(status IS NULL AND signal = '' AND ?2 IS NULL, ?3, signal),
			reason     = iif(reason = '', ?4, reason),
			last_lines = iif(last_lines = '', ?5, last_lines)
		WHERE start = ?1`, e.Start, e.Status, e.Signal, e.Reason, e.LastLines)
}

// knownSession makes a row for a start of which only a later fact is known.
func knownSession(t *tx, start string, id agent.ID, now Time) error {
	if start == "" {
		return fmt.Errorf("%w: no start id", errOp)
	}
	if id == "" {
		return nil
	}
	if err := knownActor(t, id, "", now); err != nil {
		return err
	}
	return t.exec(`INSERT INTO sessions (start, actor, tmux, state, started, changed) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (start) DO NOTHING`, start, id, id, agent.Unknown, now, 0)
}

const sessionColumns = `start, actor, runtime, tmux, pid, pid_start, thread, state, status, signal, reason, last_lines, started, changed, ended, seq`

func scanSession(r *sql.Rows) (s Session, err error) {
	err = r.Scan(&s.Start, &s.Actor, &s.Runtime, &s.Tmux, &s.PID, &s.PIDStart, &s.Thread, &s.State,
		&s.Status, &s.Signal, &s.Reason, &s.LastLines, &s.Started, &s.Changed, &s.Ended, &s.seq)
	return s, err
}

// A SessionFilter selects sessions; empty fields match all.
type SessionFilter struct {
	Actor  agent.ID
	Thread string
	Open   bool // only those that have not ended
	Page
}

// Sessions lists sessions, the newest first.
func (db Agents) Sessions(ctx context.Context, f SessionFilter) (List[Session], error) {
	var w where
	w.is("actor = ?", string(f.Actor))
	w.is("thread = ?", f.Thread)
	if f.Open {
		w.add("ended = 0")
	}
	return paged(ctx, db.read.Load(), &w, f.Page, scanSession, sessionColumns, "sessions", "started",
		func(s Session) (Time, int64) { return s.Started, s.seq })
}

// Session returns the session with that start id.
func (db Agents) Session(ctx context.Context, start string) (Session, error) {
	return first(ctx, db.read.Load(), scanSession, start, "SELECT "+sessionColumns+" FROM sessions WHERE start = ?", start)
}

// StartedSince returns the actors with a session started then or later.
func (db Agents) StartedSince(ctx context.Context, since time.Time) (map[agent.ID]bool, error) {
	ids, err := Collect(ctx, db.read.Load(), func(r *sql.Rows) (id agent.ID, err error) {
		err = r.Scan(&id)
		return id, err
	}, "SELECT DISTINCT actor FROM sessions WHERE started >= ?", At(since))
	if err != nil {
		return nil, fileError(db.home, err)
	}
	started := make(map[agent.ID]bool, len(ids))
	for _, id := range ids {
		started[id] = true
	}
	return started, nil
}
