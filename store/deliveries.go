package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"netsky/agent"
)

// A DeliveryState is the state of a message in one mailbox.
type DeliveryState string

const (
	Queued    DeliveryState = "queued"
	SentOn    DeliveryState = "sent"    // to another host: it has left this one
	Arrived   DeliveryState = "arrived" // in the inbox there, as that host says
	Claimed   DeliveryState = "claimed"
	Delivered DeliveryState = "delivered"
	Answered  DeliveryState = "answered"
	Failed    DeliveryState = "failed"
	Poisoned  DeliveryState = "poisoned"
	Cancelled DeliveryState = "cancelled"
	Expired   DeliveryState = "expired"
)

// rank orders the states that a mailbox or another host can report, so that late news are recognised. Of a
// message in several places the most final state counts: delivered, whatever became of a
// copy; and expired, which is delivered with a reason that arrives a moment later.
func (s DeliveryState) rank() (int, error) {
	switch s {
	case Queued:
		return -2, nil
	case SentOn:
		return -1, nil
	case Arrived:
		return 0, nil
	case Claimed:
		return 1, nil
	case Cancelled:
		return 2, nil
	case Failed:
		return 3, nil
	case Poisoned:
		return 4, nil
	case Delivered:
		return 5, nil
	case Expired:
		return 6, nil
	case Answered:
		return 0, fmt.Errorf("%w: %q is derived from the answer and cannot be set", errOp, s)
	}
	return 0, fmt.Errorf("%w: %q is not a delivery state", errOp, string(s))
}

// A Delivery is what happened to a message in one mailbox. A time is zero if nobody saw
// that step.
type Delivery struct {
	Message   string        `json:"message"`
	From      agent.ID      `json:"from"` // its sender
	Target    agent.ID      `json:"target"`
	State     DeliveryState `json:"state"`
	Filed     DeliveryState `json:"filed"`              // where the mailbox has it: State, but never Answered
	Attempts  int           `json:"attempts,omitempty"` // times it was put back into the inbox
	Reason    string        `json:"reason,omitempty"`
	Answer    string        `json:"answer,omitempty"` // id of what answered it
	Queued    Time          `json:"queued,omitzero"`
	Claimed   Time          `json:"claimed,omitzero"`
	Delivered Time          `json:"delivered,omitzero"`
	Ended     Time          `json:"ended,omitzero"` // failed, poisoned, cancelled, expired
	Answered  Time          `json:"answered,omitzero"`
	Changed   Time          `json:"changed"`

	seq int64
}

// UpsertDelivery records where a message is now. Within one attempt a state only moves
// forward: queued, to another host sent and arrived, claimed, then its end, of which delivered and expired are final; a
// higher number of Attempts starts again. The message must be recorded. Answered is not
// set directly: it is derived from the answer's own record. A copy that was filed unread
// changes nothing about one that was delivered.
type UpsertDelivery struct {
	Message  string        `json:"message"`
	From     agent.ID      `json:"from,omitempty"` // its sender; "" is enough if no other sender used that ID
	Target   agent.ID      `json:"target"`
	State    DeliveryState `json:"state"`
	Attempts int           `json:"attempts,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	Queued   Time          `json:"queued,omitzero"` // when it was sent, if known
	Time     Time          `json:"time"`            // when it entered this state
}

func (UpsertDelivery) name() string { return "upsert_delivery" }

func (d UpsertDelivery) stamped(now Time) Op { stamp(&d.Time, now); return d }

func (d UpsertDelivery) apply(t *tx) error {
	rank, err := d.State.rank()
	if err != nil {
		return err
	}
	err = t.one("SELECT sender FROM messages WHERE id = ?1 AND (?2 = '' OR sender = ?2) ORDER BY seq LIMIT 1",
		[]any{d.Message, d.From}, &d.From)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: delivery of %q, which is not on record", errOp, d.Message)
	}
	if err != nil {
		return err
	}
	var claimed, delivered, ended Time
	queued := d.Queued
	switch d.State {
	case Queued:
		stamp(&queued, d.Time)
	case SentOn, Arrived:
	case Claimed:
		claimed = d.Time
	case Delivered:
		delivered = d.Time
	default:
		ended = d.Time
	}
	if err := t.exec(`INSERT INTO deliveries (message, sender, target, filed, rank, attempts, reason, queued, claimed, delivered, ended, changed)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (message, sender, target) DO UPDATE SET
			filed     = iif((excluded.attempts, excluded.rank) > (attempts, rank), excluded.filed, filed),
			reason    = CASE WHEN (excluded.attempts, excluded.rank) > (attempts, rank) THEN excluded.reason
				WHEN excluded.filed <> filed THEN reason
				WHEN filed = 'delivered' THEN iif(excluded.reason = '', '', reason)
				ELSE iif(reason = '', excluded.reason, reason) END,
			changed   = iif((excluded.attempts, excluded.rank) > (attempts, rank), excluded.changed, changed),
			queued    = iif(queued = 0, excluded.queued, queued),
			claimed   = iif(excluded.attempts > attempts OR (claimed = 0 AND excluded.attempts = attempts
				AND (delivered = 0 OR excluded.claimed <= delivered)), excluded.claimed, claimed),
			delivered = iif(excluded.attempts > attempts OR (delivered = 0 AND excluded.attempts = attempts), excluded.delivered, delivered),
			ended     = iif((excluded.attempts, excluded.rank) > (attempts, rank), excluded.ended, ended),
			rank      = iif((excluded.attempts, excluded.rank) > (attempts, rank), excluded.rank, rank),
			attempts  = max(attempts, excluded.attempts)`,
		d.Message, d.From, d.Target, d.State, rank, d.Attempts, d.Reason, queued, claimed, delivered, ended, d.Time); err != nil {
		return err
	}
	return settleAnswer(t, d.Message)
}

const deliveryColumns = `message, sender, target, state, filed, attempts, reason, answer, queued, claimed, delivered, ended, answered,
	changed, seq`

func scanDelivery(r *sql.Rows) (d Delivery, err error) {
	err = r.Scan(&d.Message, &d.From, &d.Target, &d.State, &d.Filed, &d.Attempts, &d.Reason, &d.Answer, &d.Queued, &d.Claimed,
		&d.Delivered, &d.Ended, &d.Answered, &d.Changed, &d.seq)
	return d, err
}

// A DeliveryFilter selects deliveries; empty fields match all.
type DeliveryFilter struct {
	Message string
	Of      []Sent // if not nil, of one of these messages
	From    agent.ID
	Target  agent.ID
	State   DeliveryState
	Page
}

// Deliveries lists deliveries, the last changed first. The order is that of the last move
// in the mailbox, not of the answer.
func (db Mail) Deliveries(ctx context.Context, f DeliveryFilter) (List[Delivery], error) {
	var w where
	w.is("message = ?", f.Message)
	w.of("message", f.Of)
	w.is("sender = ?", string(f.From))
	w.is("target = ?", string(f.Target))
	w.is("state = ?", string(f.State))
	return paged(ctx, db.read.Load(), &w, f.Page, scanDelivery, deliveryColumns, "deliveries", "changed",
		func(d Delivery) (Time, int64) { return d.Changed, d.seq })
}

// Delivery returns what happened to a sender's message in one mailbox; the error matches
// ErrNotFound if nothing is recorded.
func (db Mail) Delivery(ctx context.Context, message string, from, target agent.ID) (Delivery, error) {
	return first(ctx, db.read.Load(), scanDelivery, message, "SELECT "+deliveryColumns+
		" FROM deliveries WHERE message = ? AND sender = ? AND target = ?", message, from, target)
}

// Waiting lists all unfinished deliveries to a mailbox, whether or not the message has
// been answered meanwhile.
func (db Mail) Waiting(ctx context.Context, target agent.ID) ([]Delivery, error) {
	return Collect(ctx, db.read.Load(), scanDelivery, "SELECT "+deliveryColumns+
		" FROM deliveries WHERE filed IN ('queued', 'claimed') AND target = ? ORDER BY seq", target)
}

// Unheard lists the deliveries to an address on another host that have left this one before
// that time, and of which nothing was heard since.
func (db Mail) Unheard(ctx context.Context, target agent.ID, before Time) ([]Delivery, error) {
	return Collect(ctx, db.read.Load(), scanDelivery, "SELECT "+deliveryColumns+
		" FROM deliveries WHERE filed = 'sent' AND target = ? AND changed < ? AND answer = '' ORDER BY seq", target, before)
}

// An Arrival is a delivery that has come to its end, or has left for another host, without what was delivered.
type Arrival struct {
	From          agent.ID
	Queued, Filed Time
}

// Arrivals calls f for each of these deliveries to a mailbox, in no order.
func (db Mail) Arrivals(ctx context.Context, target agent.ID, f func(Arrival)) error {
	rows, err := db.read.Load().QueryContext(ctx, `SELECT sender, queued, iif(delivered > 0, delivered, ended) FROM deliveries
		WHERE target = ? AND filed IN ('sent', 'arrived', 'delivered', 'expired', 'cancelled')`, target)
	if err != nil {
		return err
	}
	defer rows.Close()
	var a Arrival
	for rows.Next() {
		if err := rows.Scan(&a.From, &a.Queued, &a.Filed); err != nil {
			return err
		}
		f(a)
	}
	return rows.Err()
}
