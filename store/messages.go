package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"netsky/agent"
)

// The kinds of envelope that answer the one named in in_reply_to.
const answerKinds = "('reply', 'error', 'shutdown_ack', 'approval_answer')"

// A Message holds an envelope's fields. Metadata holds fields that were in the file but
// are no part of an envelope, and what netsky knows of its origin.
type Message struct {
	ID             string                     `json:"id"`
	From           agent.ID                   `json:"from"`
	To             agent.ID                   `json:"to,omitempty"`
	Kind           string                     `json:"kind,omitempty"`
	Text           string                     `json:"text"`
	Time           Time                       `json:"time"` // the envelope's ts
	InReplyTo      string                     `json:"in_reply_to,omitempty"`
	Thread         string                     `json:"thread,omitempty"`
	Hops           int                        `json:"hops,omitempty"`
	Via            string                     `json:"via,omitempty"`
	IdempotencyKey string                     `json:"idempotency_key,omitempty"`
	RequiresAck    bool                       `json:"requires_ack,omitempty"`
	Expires        Time                       `json:"expires,omitzero"`
	Start          string                     `json:"start,omitempty"` // the start id a shutdown is meant for
	Attachments    []string                   `json:"attachments,omitempty"`
	Metadata       map[string]json.RawMessage `json:"metadata,omitempty"`

	seq int64
}

// UpsertMessage records a message, under its ID and sender. Recorded fields stay; applied
// again it fills in empty ones. If it answers another message, that one's delivery becomes
// answered.
type UpsertMessage Message

func (UpsertMessage) name() string { return "upsert_message" }

func (m UpsertMessage) stamped(now Time) Op { stamp(&m.Time, now); return m }

func (m UpsertMessage) apply(t *tx) error {
	if m.ID == "" {
		return fmt.Errorf("%w: message without an id", errOp)
	}
	attachments, err := toJSON(m.Attachments)
	if err != nil {
		return fmt.Errorf("%w: %s: attachments: %w", errOp, m.ID, err)
	}
	metadata, err := toJSON(m.Metadata)
	if err != nil {
		return fmt.Errorf("%w: %s: metadata: %w", errOp, m.ID, err)
	}
	if err := t.exec(`INSERT INTO messages (id, sender, target, kind, text, time, in_reply_to, thread, hops, via,
			idempotency_key, requires_ack, expires, start, attachments, metadata)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id, sender) DO UPDATE SET
			target      = iif(target = '', excluded.target, target),
			in_reply_to = iif(in_reply_to = '', excluded.in_reply_to, in_reply_to),
			thread      = iif(thread = '', excluded.thread, thread),
			hops        = iif(hops = 0, excluded.hops, hops),
			via         = iif(via = '', excluded.via, via),
			idempotency_key = iif(idempotency_key = '', excluded.idempotency_key, idempotency_key),
			expires     = iif(expires = 0, excluded.expires, expires),
			start       = iif(start = '', excluded.start, start),
			attachments = iif(attachments = '', excluded.attachments, attachments),
			metadata    = iif(metadata = '', excluded.metadata, metadata)`,
		m.ID, m.From, m.To, m.Kind, m.Text, m.Time, m.InReplyTo, m.Thread, m.Hops, m.Via,
		m.IdempotencyKey, m.RequiresAck, m.Expires, m.Start, attachments, metadata); err != nil {
		return err
	}
	if m.InReplyTo == "" {
		return nil
	}
	return settleAnswer(t, m.InReplyTo)
}

// settleAnswer recomputes what answered the message from the records, so that the order of
// recording makes no difference. A reply outranks an error, an earlier answer a later one.
// If two senders used the same id, an answer belongs to the one it was sent to. An answer
// whose record was pruned stays the answer.
func settleAnswer(t *tx, message string) error {
	return t.exec(`UPDATE deliveries AS d SET (answer, answer_kind, answered) = (
			SELECT id, kind, time FROM (
				SELECT a.id, a.kind, a.time, 0 AS missing FROM messages a
				WHERE a.in_reply_to = ?1 AND a.in_reply_to <> '' AND a.sender = d.target
					AND a.kind IN `+answerKinds+`
					AND (a.target = d.sender OR NOT EXISTS (SELECT 1 FROM deliveries o
						WHERE o.message = d.message AND o.target = d.target AND o.sender <> d.sender))
				UNION ALL SELECT d.answer, d.answer_kind, d.answered, 1 WHERE NOT EXISTS (SELECT 1 FROM messages p WHERE p.id = d.answer)
				UNION ALL SELECT '', '', 0, 2)
			ORDER BY missing, kind = 'error', time, id LIMIT 1)
		WHERE d.message = ?1`, message)
}

const messageColumns = `id, sender, target, kind, text, time, in_reply_to, thread, hops, via, idempotency_key,
	requires_ack, expires, start, attachments, metadata, seq`

func scanMessage(r *sql.Rows) (m Message, err error) {
	var attachments, metadata string
	err = r.Scan(&m.ID, &m.From, &m.To, &m.Kind, &m.Text, &m.Time, &m.InReplyTo, &m.Thread, &m.Hops, &m.Via,
		&m.IdempotencyKey, &m.RequiresAck, &m.Expires, &m.Start, &attachments, &metadata, &m.seq)
	if err == nil {
		err = errors.Join(fromJSON(attachments, &m.Attachments), fromJSON(metadata, &m.Metadata))
	}
	return m, err
}

// A MessageFilter selects messages; empty fields match all.
type MessageFilter struct {
	ID        string // in full; more than one if several senders used it
	Of        []Sent // if not nil, one of these
	From, To  agent.ID
	With      agent.ID // from or to
	Kind      string
	Without   []string // of none of these kinds
	Thread    string
	InReplyTo string
	Text      string // contained in the text
	Since     Time
	State     DeliveryState // of one of its deliveries
	Page
}

// inState adds the condition that the message has a delivery in that state. Most messages
// have been delivered, so each of the newest is checked; the other states are rare and
// found by their index.
func (w *where) inState(s DeliveryState) {
	switch s {
	case "":
	case Delivered, Answered:
		w.add("EXISTS (SELECT 1 FROM deliveries d WHERE d.message = messages.id AND d.sender = messages.sender AND d.state = ?)", s)
	default:
		w.add(`seq IN (SELECT m.seq FROM deliveries d CROSS JOIN messages m ON m.id = d.message AND m.sender = d.sender
			WHERE d.state = ?)`, s)
	}
}

// Messages lists messages, the newest first.
func (db Mail) Messages(ctx context.Context, f MessageFilter) (List[Message], error) {
	return messages(ctx, db.read.Load(), f)
}

func messages(ctx context.Context, q Querier, f MessageFilter) (List[Message], error) {
	var w where
	w.is("id = ?", f.ID)
	w.of("id", f.Of)
	w.is("sender = ?", string(f.From))
	w.is("target = ?", string(f.To))
	if f.With != "" {
		w.either, w.value = []string{"sender", "target"}, f.With
	}
	w.is("kind = ?", f.Kind)
	for _, kind := range f.Without {
		w.add("kind <> ?", kind)
	}
	w.is("thread = ?", f.Thread)
	w.is("in_reply_to = ?", f.InReplyTo)
	w.is("instr(text, ?) > 0", f.Text)
	if f.Since > 0 {
		w.add("time >= ?", f.Since)
	}
	w.inState(f.State)
	return paged(ctx, q, &w, f.Page, scanMessage, messageColumns, "messages", "time",
		func(m Message) (Time, int64) { return m.Time, m.seq })
}

// LastFrom returns the newest message of each sender that has a text and is of none of the
// kinds.
func (db Mail) LastFrom(ctx context.Context, senders []agent.ID, without []string) (map[agent.ID]Message, error) {
	names, err := toJSON(senders)
	if err != nil {
		return nil, err
	}
	kinds, err := toJSON(without)
	if err != nil {
		return nil, err
	}
	found, err := Collect(ctx, db.read.Load(), scanMessage, "SELECT "+messageColumns+` FROM messages WHERE seq IN (
		SELECT (SELECT seq FROM messages m WHERE m.sender = s.value AND m.text <> '' AND m.kind NOT IN (SELECT value FROM json_each(?2))
			ORDER BY m.time DESC, m.seq DESC LIMIT 1) FROM json_each(?1) s)`, cmp.Or(names, "[]"), cmp.Or(kinds, "[]"))
	if err != nil {
		return nil, err
	}
	last := make(map[agent.ID]Message, len(found))
	for _, m := range found {
		last[m.From] = m
	}
	return last, nil
}

// Message returns the message with that id; if several senders used it, the one recorded
// first.
func (db Mail) Message(ctx context.Context, id string) (Message, error) {
	return first(ctx, db.read.Load(), scanMessage, id, "SELECT "+messageColumns+" FROM messages WHERE id = ? ORDER BY seq LIMIT 1", id)
}

// Recorded reports whether the message is recorded, every delivery of it has ended, and it
// is no question that the owner has yet to answer. Nothing else is pruned from the
// mailboxes; for an unreadable database it returns false.
func (db Mail) Recorded(ctx context.Context, id string) bool {
	all, waiting := 0, 0
	err := db.read.Load().QueryRowContext(ctx, `SELECT count(*), count(*) FILTER (WHERE filed IN ('queued', 'claimed'))
		+ EXISTS (`+OpenQuestion+` AND m.id = ?1) FROM deliveries WHERE message = ?1`, id).Scan(&all, &waiting)
	return err == nil && all > 0 && waiting == 0
}
