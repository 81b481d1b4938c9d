package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"netsky/agent"
)

// message tells of the whole conversation a message stands in.
func (t *Timeline) message(ctx context.Context, q Querier) error {
	m, err := first(ctx, q, scanMessage, t.Subject.ID, "SELECT "+messageColumns+" FROM messages WHERE id = ? ORDER BY seq", t.Subject.ID)
	if err != nil {
		return err
	}
	t.Message = &m
	return t.conversation(ctx, q, m.ID, m.Thread)
}

func (t *Timeline) thread(ctx context.Context, q Querier) error {
	if err := t.conversation(ctx, q, "", t.Subject.ID); err != nil {
		return err
	}
	return t.sessions(ctx, q, "thread <> '' AND thread = ?", t.Subject.ID)
}

// conversation adds the messages that are linked to the one, back and forth,
// and those of their threads, each with all that became of it. A thread may be
// named for the message that began it.
func (t *Timeline) conversation(ctx context.Context, q Querier, id, thread string) error {
	ids, err := Collect(ctx, q, scanText, `WITH RECURSIVE chain (id) AS (
			SELECT id FROM messages WHERE id = ?1 OR (thread <> '' AND thread = ?2) OR (?2 <> '' AND id = ?2)
			UNION SELECT m.in_reply_to FROM chain c JOIN messages m ON m.id = c.id WHERE m.in_reply_to <> ''
			UNION SELECT m.id FROM chain c JOIN messages m ON m.in_reply_to = c.id AND m.in_reply_to <> ''
			UNION SELECT m.thread FROM chain c JOIN messages m ON m.id = c.id WHERE m.thread <> ''
			UNION SELECT m.id FROM chain c JOIN messages m ON m.thread = c.id AND m.thread <> ''
			LIMIT ?3)
		SELECT id FROM chain`, id, thread, maxTimeline+1)
	if err != nil {
		return err
	}
	if len(ids) > maxTimeline {
		t.More = true
		ids = ids[:maxTimeline]
	}
	for _, id := range ids {
		if err := t.oneMessage(ctx, q, id); err != nil {
			return err
		}
	}
	return nil
}

func scanText(r *sql.Rows) (s string, err error) {
	err = r.Scan(&s)
	return s, err
}

// oneMessage adds a message, where it went, what was made of it and what was
// said about it.
func (t *Timeline) oneMessage(ctx context.Context, q Querier, id string) error {
	found, err := Collect(ctx, q, scanMessage, "SELECT "+messageColumns+" FROM messages WHERE id = ? ORDER BY seq", id)
	if err != nil {
		return err
	}
	for _, m := range found {
		t.addMessage(m)
	}
	if err := t.deliveries(ctx, q, "message = ?", id); err != nil {
		return err
	}
	in, err := inputs(ctx, q, id)
	if err != nil {
		return err
	}
	for _, i := range in {
		t.add(i.Created, "input_"+InputPending, i.Actor, "", i.Thread, id)
		t.add(i.Ended, "input_"+i.State, i.Actor, "", i.Reason, id)
	}
	if err := t.tasks(ctx, q, "message = ?", id); err != nil {
		return err
	}
	if err := t.phone(ctx, q, id); err != nil {
		return err
	}
	// What was decided about a question has the id of the mail that asked as its key.
	if err := t.logs(ctx, q, "key = ?", id); err != nil {
		return err
	}
	return t.about(ctx, q, id)
}

// phone adds when a message was read from the owner's phone, and what became of each text
// that it was sent there as.
func (t *Timeline) phone(ctx context.Context, q Querier, id string) error {
	found, err := Collect(ctx, q, func(r *sql.Rows) (e TimelineEvent, err error) {
		err = r.Scan(&e.Time, &e.Kind, &e.Text)
		return e, err
	}, `SELECT heard, 'phone_heard', '' FROM phone_heard WHERE message = ?1 AND message <> ''
		UNION ALL SELECT CASE WHEN ended > 0 THEN ended WHEN began > 0 THEN began ELSE created END,
			'phone_' || iif(state IN ('pending', 'sending'), 'waits', state),
			iif(parts > 1, 'part ' || part || ' of ' || parts || iif(fact = '', '', ': '), '') || fact
		FROM phone_said WHERE about = ?1 AND about <> '' AND kind = 'mail'`, id)
	for _, e := range found {
		t.add(e.Time, e.Kind, agent.Owner, "", e.Text, id)
	}
	return err
}

func (t *Timeline) addMessage(m Message) {
	t.Events = append(t.Events, TimelineEvent{m.Time, "message", m.From, m.To, m.Text, m.ID})
}

func (t *Timeline) deliveries(ctx context.Context, q Querier, cond string, args ...any) error {
	found, err := Collect(ctx, q, scanDelivery, "SELECT "+deliveryColumns+" FROM deliveries WHERE "+cond+
		" ORDER BY changed DESC, seq DESC LIMIT "+strconv.Itoa(maxTimeline), args...)
	if err != nil {
		return err
	}
	for _, d := range found {
		for _, at := range []Time{d.Claimed, d.Delivered, d.Ended} { // by the kernel's clock, which may be some milliseconds behind
			if at != 0 && d.Queued > at {
				d.Queued = at
			}
		}
		t.add(d.Queued, string(Queued), d.Target, "", "", d.Message)
		if d.Filed == SentOn || d.Filed == Arrived {
			t.add(d.Changed, string(d.Filed), d.Target, "", "", d.Message)
		}
		t.add(d.Claimed, string(Claimed), d.Target, "", "", d.Message)
		t.add(d.Delivered, string(Delivered), d.Target, "", d.Reason, d.Message)
		if d.State == Answered { // an error may also say why it was not delivered
			t.add(d.Answered, string(Answered), d.Target, "", d.Answer, d.Message)
		}
		if d.Ended != 0 {
			how := d.State
			if how == Answered { // it came to an end before it was answered all the same
				how = Failed
			}
			t.add(d.Ended, string(how), d.Target, "", d.Reason, d.Message)
		}
	}
	return nil
}

func (t *Timeline) tasks(ctx context.Context, q Querier, cond string, args ...any) error {
	found, err := Collect(ctx, q, scanTask, "SELECT "+taskColumns+" FROM tasks WHERE "+cond+
		" ORDER BY created DESC LIMIT "+strconv.Itoa(maxTimeline), args...)
	if err != nil {
		return err
	}
	for _, k := range found {
		t.add(k.Created, "task_created", k.AskedBy, k.Assignee, k.Title, k.ID)
		t.add(k.Started, "task_started", k.Assignee, "", k.Title, k.ID)
		t.add(k.Ended, "task_ended", k.Assignee, "", k.Word(), k.ID)
	}
	return nil
}

func (t *Timeline) sessions(ctx context.Context, q Querier, cond string, args ...any) error {
	found, err := Collect(ctx, q, scanSession, "SELECT "+sessionColumns+" FROM sessions WHERE "+cond+
		" ORDER BY started DESC LIMIT "+strconv.Itoa(maxTimeline), args...)
	if err != nil {
		return err
	}
	for _, s := range found {
		t.add(s.Started, "session_start", s.Actor, "", s.Runtime, s.Start)
		how := s.Reason
		if how == EndedUnseen {
			how = "cause unknown: netsky was not watching"
		}
		if s.Status != nil {
			how = "exited " + strconv.Itoa(*s.Status)
		} else if s.Signal != "" {
			how = s.Signal
		}
		t.add(s.Ended, "session_end", s.Actor, "", how, s.Start)
	}
	return nil
}

// about adds the notes and logs about an id.
func (t *Timeline) about(ctx context.Context, q Querier, id string) error {
	if err := t.logs(ctx, q, "about <> '' AND about = ?", id); err != nil {
		return err
	}
	notes, err := Collect(ctx, q, scanNote, "SELECT "+noteColumns+" FROM notes WHERE about <> '' AND about = ? ORDER BY seq DESC LIMIT "+
		strconv.Itoa(maxTimeline), id)
	if err != nil {
		return err
	}
	for _, n := range notes {
		t.add(n.Created, "note", agent.ID(n.Author), "", n.Text, n.ID)
	}
	return nil
}

func (t *Timeline) logs(ctx context.Context, q Querier, cond string, args ...any) error {
	found, err := Collect(ctx, q, scanLog, "SELECT "+logColumns+" FROM logs WHERE "+cond+" ORDER BY id DESC LIMIT "+
		strconv.Itoa(maxTimeline), args...)
	if err != nil {
		return err
	}
	for _, l := range found {
		t.add(l.Time, "log", l.Actor, "", withFields(l), l.About)
	}
	return nil
}

// session adds one start and what its agent received, sent and logged from then to its
// end.
func (t *Timeline) session(ctx context.Context, q Querier) error {
	s, err := first(ctx, q, scanSession, t.Subject.ID, "SELECT "+sessionColumns+" FROM sessions WHERE start = ?", t.Subject.ID)
	if err != nil {
		return err
	}
	t.Session = &s
	till := s.Ended
	if till == 0 {
		till = 1<<62 - 1
	}
	if err := t.sessions(ctx, q, "start = ?", s.Start); err != nil {
		return err
	}
	if err := t.traffic(ctx, q, s.Actor, s.Started, till); err != nil {
		return err
	}
	if err := t.logs(ctx, q, "actor <> '' AND actor = ? AND time BETWEEN ? AND ?", s.Actor, s.Started, till); err != nil {
		return err
	}
	return t.about(ctx, q, s.Start)
}

// traffic adds what the agent sent and what its mailbox did with incoming mail.
func (t *Timeline) traffic(ctx context.Context, q Querier, id agent.ID, from, till Time) error {
	if err := t.deliveries(ctx, q, "target = ? AND changed BETWEEN ? AND ?", id, from, till); err != nil {
		return err
	}
	for _, side := range []string{"sender", "target"} {
		found, err := Collect(ctx, q, scanMessage, "SELECT "+messageColumns+" FROM messages WHERE "+side+
			" = ? AND time BETWEEN ? AND ? ORDER BY time DESC, seq DESC LIMIT "+strconv.Itoa(maxTimeline), id, from, till)
		if err != nil {
			return err
		}
		for _, m := range found {
			t.addMessage(m)
		}
	}
	return nil
}

// task adds a task, the conversation that caused it, and what it waits for.
func (t *Timeline) task(ctx context.Context, q Querier) error {
	k, err := first(ctx, q, scanTask, t.Subject.ID, "SELECT "+taskColumns+" FROM tasks WHERE id = ?", t.Subject.ID)
	if err != nil {
		return err
	}
	t.Task = &k
	if err := t.tasks(ctx, q, "id = ?1 OR id IN (SELECT needs FROM task_dependencies WHERE task = ?1)", k.ID); err != nil {
		return err
	}
	if k.Message != "" {
		if err := t.conversation(ctx, q, k.Message, ""); err != nil {
			return err
		}
	}
	return t.about(ctx, q, k.ID)
}

// note adds a note, and what is about it in turn.
func (t *Timeline) note(ctx context.Context, q Querier) error {
	n, err := first(ctx, q, scanNote, t.Subject.ID, "SELECT "+noteColumns+" FROM notes WHERE id = ?", t.Subject.ID)
	if err != nil {
		return err
	}
	t.Note = &n
	t.add(n.Created, "note", agent.ID(n.Author), "", n.Text, n.ID)
	return t.about(ctx, q, n.ID)
}

// actor adds all starts of an actor and its newest traffic.
func (t *Timeline) actor(ctx context.Context, q Querier) error {
	found, err := actors(ctx, q)
	if err != nil {
		return err
	}
	id := agent.ID(t.Subject.ID)
	if i := slices.IndexFunc(found, func(a Actor) bool { return a.ID == id }); i >= 0 {
		t.Actor = &found[i]
	}
	if err := t.sessions(ctx, q, "actor = ?", id); err != nil {
		return err
	}
	if err := t.traffic(ctx, q, id, 0, 1<<62-1); err != nil {
		return err
	}
	if err := t.tasks(ctx, q, "assignee = ?", id); err != nil {
		return err
	}
	if err := t.logs(ctx, q, "actor <> '' AND actor = ?", id); err != nil {
		return err
	}
	return t.about(ctx, q, t.Subject.ID)
}

// withFields returns a log's text followed by its fields, by name.
func withFields(l Log) string {
	words := make([]string, 0, len(l.Fields))
	for _, name := range slices.Sorted(maps.Keys(l.Fields)) {
		words = append(words, fmt.Sprintf("%s %v", name, l.Fields[name]))
	}
	if len(words) == 0 {
		return l.Text
	}
	return l.Text + " (" + strings.Join(words, ", ") + ")"
}
