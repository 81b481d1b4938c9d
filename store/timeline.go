package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"netsky/agent"
)

// ErrAmbiguous is returned by Timeline for an abbreviation that fits several ids.
var ErrAmbiguous = errors.New("ambiguous id")

// minPrefix is the minimum length of an abbreviated id.
const minPrefix = 6

// maxTimeline limits each part of a timeline: messages of a thread, logs.
const maxTimeline = 500

// Subjects of a timeline. What landed and what was checked have none.
const (
	SubjectMessage = "message"
	SubjectSession = "session"
	SubjectTask    = "task"
	SubjectActor   = "actor"
	SubjectThread  = "thread"
	SubjectNote    = "note"
	SubjectLanding = "landing"
	SubjectCheck   = "check"
)

// A Subject is what an id refers to.
type Subject struct {
	Kind string `json:"kind"`
	ID   string `json:"id"` // in full
}

// A TimelineEvent is one event in a timeline. Kind is "message", a DeliveryState, an
// input's state after "input_", "phone_heard", what became of a text after "phone_"
// (waits, sent, unconfirmed, failed, dropped), "session_start", "session_end", "task_created",
// "task_started", "task_ended", "note" or "log".
type TimelineEvent struct {
	Time  Time     `json:"time"`
	Kind  string   `json:"kind"`
	Actor agent.ID `json:"actor,omitempty"` // who did it, or where
	To    agent.ID `json:"to,omitempty"`
	Text  string   `json:"text,omitempty"`
	Ref   string   `json:"ref,omitempty"` // id of the message, session, task or note
}

// A Timeline is everything recorded about one id, the oldest first. More reports that
// there was more than it holds; the newest are kept.
type Timeline struct {
	Subject Subject         `json:"subject"`
	Actor   *Actor          `json:"actor,omitempty"`
	Session *Session        `json:"session,omitempty"`
	Task    *Task           `json:"task,omitempty"`
	Message *Message        `json:"message,omitempty"`
	Note    *Note           `json:"note,omitempty"`
	Events  []TimelineEvent `json:"events"`
	More    bool            `json:"more,omitempty"`
}

// Timeline returns the history of a message (with its whole thread: what it answered and
// what answered it), of a session by its start id, of a task, of a note, of a thread or of
// an actor, including the owner. An id may be abbreviated to six characters if no other
// begins so, and the name of a file that a person dropped into an inbox stands for the
// newest message that arrived in it; otherwise the error matches ErrAmbiguous or
// ErrNotFound.
func (db History) Timeline(ctx context.Context, id string) (Timeline, error) {
	tx, err := db.read.Load().BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return Timeline{}, fileError(db.home, err)
	}
	defer tx.Rollback()
	s, err := db.subject(ctx, tx, id)
	if err != nil {
		return Timeline{}, err
	}
	t := Timeline{Subject: s, Events: []TimelineEvent{}}
	switch s.Kind {
	case SubjectMessage:
		err = t.message(ctx, tx)
	case SubjectSession:
		err = t.session(ctx, tx)
	case SubjectTask:
		err = t.task(ctx, tx)
	case SubjectThread:
		err = t.thread(ctx, tx)
	case SubjectActor:
		err = t.actor(ctx, tx)
	case SubjectNote:
		err = t.note(ctx, tx)
	case "landing", "check":
		err = t.about(ctx, tx, s.ID)
	}
	if err != nil {
		return Timeline{}, fileError(db.home, err)
	}
	t.sort()
	return t, nil
}

// Resolve returns what an id refers to. Its errors are Timeline's.
func (db History) Resolve(ctx context.Context, id string) (Subject, error) {
	return db.subject(ctx, db.read.Load(), id)
}

func (db History) subject(ctx context.Context, q Querier, id string) (Subject, error) {
	s, err := resolve(ctx, q, id)
	if !errors.Is(err, ErrNotFound) {
		return s, err
	}
	found, ferr := Collect(ctx, q, scanSubject, `SELECT 'landing', id FROM landings WHERE id = ?1
		UNION ALL SELECT 'check', id FROM checks WHERE id = ?1`, id)
	if ferr != nil {
		return s, fileError(db.home, ferr)
	}
	if len(found) == 0 {
		return s, err
	}
	return found[0], nil
}

func scanSubject(r *sql.Rows) (s Subject, err error) {
	err = r.Scan(&s.Kind, &s.ID)
	return s, err
}

// resolve finds what the id refers to: exact matches first, then prefixes.
func resolve(ctx context.Context, q Querier, id string) (Subject, error) {
	if id == "" {
		return Subject{}, fmt.Errorf("%q: %w", id, ErrNotFound)
	}
	found, err := Collect(ctx, q, scanSubject, `SELECT 'actor', id FROM actors WHERE id = ?1
		UNION ALL SELECT 'task', id FROM tasks WHERE id = ?1
		UNION ALL SELECT 'session', start FROM sessions WHERE start = ?1
		UNION ALL SELECT DISTINCT 'message', id FROM messages WHERE id = ?1
		UNION ALL SELECT 'note', id FROM notes WHERE id = ?1
		UNION ALL SELECT 'thread', ?1 WHERE EXISTS (SELECT 1 FROM messages WHERE thread <> '' AND thread = ?1)
			OR EXISTS (SELECT 1 FROM sessions WHERE thread <> '' AND thread = ?1)`, id)
	if err != nil {
		return Subject{}, err
	}
	if len(found) > 0 {
		return found[0], nil
	}
	if who, err := agent.ParseAddress(id); err == nil {
		return correspondent(ctx, q, who)
	}
	if found, err = byFile(ctx, q, id); err != nil {
		return Subject{}, err
	}
	if len(found) > 0 {
		return found[0], nil
	}
	if len(id) < minPrefix {
		return Subject{}, fmt.Errorf("%q: %w; the beginning of an id needs at least %d characters", id, ErrNotFound, minPrefix)
	}
	// '~' sorts after every character of an id.
	found, err = Collect(ctx, q, scanSubject, `SELECT * FROM (SELECT 'task', id FROM tasks WHERE id > ?1 AND id < ?1 || '~' LIMIT 4)
		UNION ALL SELECT * FROM (SELECT 'session', start FROM sessions WHERE start > ?1 AND start < ?1 || '~' LIMIT 4)
		UNION ALL SELECT * FROM (SELECT DISTINCT 'message', id FROM messages WHERE id > ?1 AND id < ?1 || '~' LIMIT 4)
		UNION ALL SELECT * FROM (SELECT 'note', id FROM notes WHERE id > ?1 AND id < ?1 || '~' LIMIT 4)
		UNION ALL SELECT * FROM (SELECT 'thread', thread FROM messages WHERE thread <> '' AND thread > ?1 AND thread < ?1 || '~'
			UNION SELECT 'thread', thread FROM sessions WHERE thread <> '' AND thread > ?1 AND thread < ?1 || '~' LIMIT 4)`, id)
	if err != nil {
		return Subject{}, err
	}
	seen := make(map[string]bool) // the thread of a task's brief has the task's id, which names the task
	found = slices.DeleteFunc(found, func(s Subject) bool { again := seen[s.ID]; seen[s.ID] = true; return again })
	switch len(found) {
	case 0:
		return Subject{}, fmt.Errorf("%q: %w", id, ErrNotFound)
	case 1:
		return found[0], nil
	}
	var names []string
	for _, s := range found {
		names = append(names, s.Kind+" "+s.ID)
	}
	return Subject{}, fmt.Errorf("%q: %w: %s", id, ErrAmbiguous, strings.Join(names, ", "))
}

// correspondent finds an address that was never started, such as the owner's, by its mail.
func correspondent(ctx context.Context, q Querier, id agent.ID) (Subject, error) {
	found, err := Collect(ctx, q, scanSubject, `SELECT 'actor', ?1 WHERE EXISTS (SELECT 1 FROM messages WHERE sender = ?1)
		OR EXISTS (SELECT 1 FROM messages WHERE target = ?1)`, id)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%q: %w", id, ErrNotFound)
	}
	if err != nil {
		return Subject{}, err
	}
	return found[0], nil
}

func (t *Timeline) add(at Time, kind string, who, to agent.ID, text, ref string) {
	if at != 0 {
		t.Events = append(t.Events, TimelineEvent{at, kind, who, to, text, ref})
	}
}

// rankOf orders events of the same millisecond as they must have happened.
func rankOf(kind string) int {
	order := []string{"session_start", "task_created", "message", "queued", "sent", "arrived", "input_pending", "claimed", "delivered",
		"input_consumed", "task_started", "answered"}
	if i := slices.Index(order, kind); i >= 0 {
		return i
	}
	return len(order)
}

// writtenFirst makes sure that a message is written before anything happens to it: its
// time comes from its sender's clock, which may differ.
func (t *Timeline) writtenFirst() {
	befell := make(map[string]Time) // first, by message
	for _, e := range t.Events {
		if rank := rankOf(e.Kind); rank < rankOf("queued") || rank == rankOf("task_started") || rank > rankOf("answered") {
			continue
		}
		if at, ok := befell[e.Ref]; !ok || e.Time < at {
			befell[e.Ref] = e.Time
		}
	}
	for i, e := range t.Events {
		if at, ok := befell[e.Ref]; ok && e.Kind == "message" && at < e.Time {
			t.Events[i].Time = at
		}
	}
}

// sort orders the events, removes duplicates, and keeps the newest.
func (t *Timeline) sort() {
	t.writtenFirst()
	slices.SortStableFunc(t.Events, func(a, b TimelineEvent) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(rankOf(a.Kind), rankOf(b.Kind)),
			cmp.Compare(a.Ref, b.Ref), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Text, b.Text))
	})
	t.Events = slices.Compact(t.Events)
	if over := len(t.Events) - 2*maxTimeline; over > 0 {
		t.Events = t.Events[over:]
		t.More = true
	}
}
