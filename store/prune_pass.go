// This file removes from the records what ended long ago, and gives the space back.
//
// It is the SQL of that alone: its caller, package store, runs each step in a transaction
// of its writer. A step looks at a few rows, so that a send never waits for long. A crash
// leaves whole steps, and a log entry that counts what they removed; the next pass
// continues with the rows that are left.

package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// rows is how many rows one step looks at: some milliseconds.
const rows = 64

// A Pass removes what ended before a time. It keeps the actors, the settings, the notes,
// the active schedules, the last session of each actor and texts that are still to be
// sent to the phone; messages that are queued, claimed or poisoned, that an actor has not
// consumed, that an unfinished task came from, or that ask the owner and are not answered;
// unfinished tasks with those they are linked to, and what their turns cost; and the checks
// that landings rest on.
type Pass struct {
	Before time.Time
	Held   func(message string) bool // further messages to keep
	Key    string                    // of the log entry, different for each pass
	Why    string                    // what the log entry gives as the reason
	Early  bool                      // the owner's messages, sent and received, stay

	Removed map[string]int // rows, by table

	stage int
	after int64 // with seq: the last row that was looked at
	seq   int64
}

// Clone returns a pass that continues where p is.
func (p *Pass) Clone() *Pass {
	next := *p
	if next.Removed = maps.Clone(p.Removed); next.Removed == nil {
		next.Removed = make(map[string]int)
	}
	return &next
}

// Done reports whether nothing is left to do.
func (p *Pass) Done() bool { return p.stage >= len(stages) }

// Total returns how many rows were removed.
func (p *Pass) Total() (n int) {
	for _, c := range p.Removed {
		n += c
	}
	return n
}

// Step does the next part, in the transaction that is open on the connection.
func (p *Pass) Step(c *sql.Conn) error {
	if p.Done() {
		return nil
	}
	t, had := pruneTx{c, p}, p.Total()
	done, err := stages[p.stage](t)
	if err != nil {
		return err
	}
	if done {
		p.stage, p.after, p.seq = p.stage+1, 0, 0
	}
	if p.Total() == had {
		return nil
	}
	// The numbers of the last messages, if those were removed, are given again.
	_, err = c.ExecContext(context.Background(), "UPDATE phone_lines SET forwarded = min(forwarded, (SELECT coalesce(max(seq), 0) FROM messages))")
	if err != nil {
		return err
	}
	_, err = c.ExecContext(context.Background(), `INSERT INTO logs (key, time, level, part, text) VALUES (?, ?, 'INFO', 'records', ?)
		ON CONFLICT (key) DO UPDATE SET text = excluded.text`, p.Key, max(time.Now().UnixMilli(), t.cutoff()), p.text())
	return err
}

// words are the tables as they are called in the log.
var words = map[string]string{"logs": "log entries", "task_dependencies": "links of tasks", "actor_inputs": "inputs", "self_update_runs": "updates", "phone_heard": "texts from the phone", "phone_said": "texts to the phone", "turn_files": "files of turns", "turns_stated": "statements of cost", "threads": "conversations"}

func (p *Pass) text() string {
	var counts []string
	for _, table := range slices.Sorted(maps.Keys(p.Removed)) {
		if n := p.Removed[table]; n > 0 {
			word := table
			if w := words[table]; w != "" {
				word = w
			}
			counts = append(counts, fmt.Sprintf("%s %d", word, n))
		}
	}
	return fmt.Sprintf("removed records that ended before %s (%s): %s", p.Before.Local().Format("2006-01-02 15:04"), p.Why, strings.Join(counts, ", "))
}

// A pruneTx is one step of a pass, in a transaction of its own.
type pruneTx struct {
	conn *sql.Conn
	*Pass
}

var stages = []func(pruneTx) (done bool, err error){pruneTx.deliveries, pruneTx.messages, pruneTx.logs, pruneTx.sessions, pruneTx.tasks, pruneTx.heard, pruneTx.said, pruneTx.checks, pruneTx.landings, pruneTx.comments, pruneTx.turns, pruneTx.rest}

func (t pruneTx) cutoff() int64 { return t.Before.UnixMilli() }

// yes runs a query whose result is true or false.
func (t pruneTx) yes(query string, args ...any) (yes bool, err error) {
	err = t.conn.QueryRowContext(context.Background(), query, args...).Scan(&yes)
	return yes, err
}

func (t pruneTx) remove(table, cond string, args ...any) error {
	done, err := t.conn.ExecContext(context.Background(), "DELETE FROM "+table+" WHERE "+cond, args...)
	if err != nil {
		return err
	}
	n, err := done.RowsAffected()
	t.Removed[table] += int(n)
	return err
}

// A row is a row of a table that is old enough to be removed.
type row struct {
	seq, time int64
	id, other string
}

// each calls do for the next rows of a table that are old enough, which an index finds. It
// reports whether those were the last.
func (t pruneTx) each(table, time, id, other string, do func(row) error) (done bool, err error) {
	list, err := t.old(table, time, id, other)
	if err != nil {
		return false, err
	}
	for _, r := range list {
		if err := do(r); err != nil {
			return false, err
		}
		t.after, t.seq = r.time, r.seq
	}
	return len(list) < rows, nil
}

func (t pruneTx) old(table, time, id, other string) (list []row, err error) {
	found, err := t.conn.QueryContext(context.Background(), fmt.Sprintf(`SELECT seq, %[2]s, %[3]s, %[4]s FROM %[1]s
		WHERE (%[2]s, seq) > (?, ?) AND %[2]s < ? ORDER BY %[2]s, seq LIMIT ?`, table, time, id, other), t.after, t.seq, t.cutoff(), rows)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for found.Next() {
		var r row
		if err := found.Scan(&r.seq, &r.time, &r.id, &r.other); err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, found.Err()
}

// OpenQuestion is a query that finds the messages m, with their deliveries d, that ask the
// owner and are not answered: those that package attention lists.
const OpenQuestion = `SELECT 1 FROM messages m JOIN deliveries d ON d.message = m.id AND d.sender = m.sender
	WHERE d.target = 'owner' AND d.filed = 'delivered' AND d.answer = '' AND m.sender LIKE 'agent%'
	AND CASE WHEN m.kind = 'approval' THEN m.via <> 'code'
		WHEN m.kind IN ('reply', 'error', 'ack', 'shutdown', 'shutdown_ack', 'cancel') THEN 0
		ELSE m.requires_ack OR m.kind IN ('brief', 'question') END`

const unfinished = "state IN ('open', 'in_progress', 'blocked')"

// deliveries removes messages by the time of their last move in a mailbox, which is by
// netsky's clock.
func (t pruneTx) deliveries() (bool, error) {
	return t.each("deliveries", "changed", "message", "sender", func(r row) error { return t.message(r.id, r.other) })
}

// messages removes messages without a delivery.
func (t pruneTx) messages() (bool, error) {
	return t.each("messages", "time", "id", "sender", func(r row) error {
		if moved, err := t.yes("SELECT EXISTS (SELECT 1 FROM deliveries WHERE message = ? AND sender = ?)", r.id, r.other); moved || err != nil {
			return err
		}
		return t.message(r.id, r.other)
	})
}

func (t pruneTx) message(id, sender string) error {
	if t.Held != nil && t.Held(id) {
		return nil
	}
	needed, err := t.yes(`SELECT EXISTS (SELECT 1 FROM deliveries WHERE message = ?1 AND sender = ?2
			AND (changed >= ?3 OR answered >= ?3 OR filed IN ('queued', 'claimed', 'poisoned')))
		OR ?4 AND EXISTS (SELECT 1 FROM deliveries WHERE message = ?1 AND sender = ?2 AND 'owner' IN (sender, target))
		OR EXISTS (SELECT 1 FROM actor_inputs WHERE message = ?1 AND state = 'pending')
		OR EXISTS (SELECT 1 FROM tasks WHERE message <> '' AND message = ?1 AND `+unfinished+`)
		OR EXISTS (`+OpenQuestion+` AND m.id = ?1 AND m.sender = ?2)`, id, sender, t.cutoff(), t.Early)
	if needed || err != nil {
		return err
	}
	if err := t.remove("deliveries", "message = ? AND sender = ?", id, sender); err != nil {
		return err
	}
	if err := t.remove("messages", "id = ? AND sender = ?", id, sender); err != nil {
		return err
	}
	return t.remove("actor_inputs", "message = ?1 AND NOT EXISTS (SELECT 1 FROM messages WHERE id = ?1)", id)
}

// logs removes log entries. Their numbers grow as they are recorded, so the first part
// without an old one is the end.
func (t pruneTx) logs() (bool, error) {
	had, last := t.Removed["logs"], sql.NullInt64{}
	err := t.conn.QueryRowContext(context.Background(), "SELECT max(id) FROM (SELECT id FROM logs WHERE id > ? ORDER BY id LIMIT ?)", t.seq, rows).Scan(&last)
	if err == nil && last.Valid {
		err = t.remove("logs", "id > ? AND id <= ? AND time < ? AND key <> ?", t.seq, last.Int64, t.cutoff(), t.Key) // the clock may be set back meanwhile
		t.seq = last.Int64
	}
	return t.Removed["logs"] == had, err
}

// sessions removes sessions that have ended, but never an actor's last.
func (t pruneTx) sessions() (bool, error) {
	return t.each("sessions", "started", "start", "actor", func(r row) error {
		return t.remove("sessions", `seq = ?1 AND ended <> 0 AND ended < ?2
			AND EXISTS (SELECT 1 FROM sessions n WHERE n.actor = ?3 AND (n.started, n.seq) > (?4, ?1))`, r.seq, t.cutoff(), r.other, r.time)
	})
}

// tasks removes those that have ended, if all that are linked to them have, too.
func (t pruneTx) tasks() (bool, error) {
	return t.each("tasks", "created", "id", "state", func(r row) error {
		needed, err := t.yes(`SELECT EXISTS (SELECT 1 FROM tasks WHERE (`+unfinished+` OR updated >= ?2) AND id IN (SELECT ?1
			UNION SELECT needs FROM task_dependencies WHERE task = ?1 UNION SELECT task FROM task_dependencies WHERE needs = ?1))`, r.id, t.cutoff())
		if needed || err != nil {
			return err
		}
		if err := t.remove("task_dependencies", "task = ?1 OR needs = ?1", r.id); err != nil {
			return err
		}
		return t.remove("tasks", "id = ?", r.id)
	})
}

// heard and said remove what passed through the phone, but nothing that is not finished.
func (t pruneTx) heard() (bool, error) {
	return t.each("phone_heard", "heard", "guid", "state", func(r row) error { return t.remove("phone_heard", "seq = ? AND state = 'done'", r.seq) })
}

func (t pruneTx) said() (bool, error) {
	return t.each("phone_said", "created", "id", "state", func(r row) error {
		return t.remove("phone_said", "seq = ? AND state NOT IN ('pending', 'sending')", r.seq)
	})
}

// checks, landings and comments remove what became of work, but nothing that is not finished, and
// no check that a landing rests on.
func (t pruneTx) checks() (bool, error) {
	return t.each("checks", "started", "id", "state", func(r row) error {
		return t.remove("checks", "seq = ?1 AND state <> 'running' AND NOT EXISTS (SELECT 1 FROM landings WHERE evidence = ?2 AND started >= ?3)", r.seq, r.id, t.cutoff())
	})
}

func (t pruneTx) landings() (bool, error) {
	return t.each("landings", "started", "id", "state", func(r row) error { return t.remove("landings", "seq = ? AND state <> 'begun'", r.seq) })
}

func (t pruneTx) comments() (bool, error) {
	return t.each("comments", "created", "id", "state", func(r row) error { return t.remove("comments", "seq = ? AND state <> 'pending'", r.seq) })
}

// turns removes what turns cost, but nothing of an unfinished task: its budget counts it.
func (t pruneTx) turns() (bool, error) {
	return t.each("turns", "time", "key", "task", func(r row) error {
		return t.remove("turns", "seq = ?1 AND NOT EXISTS (SELECT 1 FROM tasks WHERE id = ?2 AND "+unfinished+")", r.seq, r.other)
	})
}

// rest removes what there are few of: schedules and updates that have ended, how far turns were
// read, and the budgets of days and of tasks that have no turns left.
func (t pruneTx) rest() (bool, error) {
	for _, table := range []string{"schedules", "self_update_runs"} {
		if err := t.remove(table, "ended <> 0 AND ended < ?", t.cutoff()); err != nil {
			return false, err
		}
	}
	for table, cond := range map[string]string{
		"turn_files": "changed < ?", "turns_stated": "time < ?",
		"threads": "last < ? AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.thread = threads.thread)",
	} {
		if err := t.remove(table, cond, t.cutoff()); err != nil {
			return false, err
		}
	}
	return true, t.remove("budgets", "changed < ?1 AND (period <> '' OR NOT EXISTS (SELECT 1 FROM turns WHERE task = about))", t.cutoff())
}
