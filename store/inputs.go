package store

import (
	"context"
	"database/sql"
	"fmt"

	"netsky/agent"
)

// States of an actor's input.
const (
	InputPending   = "pending"
	InputConsumed  = "consumed"
	InputCancelled = "cancelled"
)

// An ActorInput is a message on its way into one thread of one actor. Its row is written
// before it is submitted.
type ActorInput struct {
	Actor   agent.ID `json:"actor"`
	Thread  string   `json:"thread"`
	Message string   `json:"message"`
	State   string   `json:"state"` // InputPending, InputConsumed, InputCancelled
	Reason  string   `json:"reason,omitempty"`
	Created Time     `json:"created"`
	Ended   Time     `json:"ended,omitzero"`

	seq int64
}

// UpsertInput records an input, or its outcome. Consumed and cancelled are final.
type UpsertInput struct {
	Actor   agent.ID `json:"actor"`
	Thread  string   `json:"thread"`
	Message string   `json:"message"`
	State   string   `json:"state"`
	Reason  string   `json:"reason,omitempty"`
	Time    Time     `json:"time"`
}

func (UpsertInput) name() string { return "upsert_input" }

func (i UpsertInput) stamped(now Time) Op { stamp(&i.Time, now); return i }

func (i UpsertInput) apply(t *tx) error {
	var ended Time
	switch i.State {
	case InputPending:
	case InputConsumed, InputCancelled:
		ended = i.Time
	default:
		return fmt.Errorf("%w: %q is not an input state", errOp, i.State)
	}
	if _, err := agent.ParseAddress(string(i.Actor)); err != nil {
		return fmt.Errorf("%w: %w", errOp, err)
	}
	return t.exec(`INSERT INTO actor_inputs (actor, thread, message, state, reason, created, ended) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (actor, thread, message) DO UPDATE SET
			state   = iif(state = 'pending', excluded.state, state),
			reason  = iif(state = 'pending', excluded.reason, reason),
			ended   = iif(state = 'pending', excluded.ended, ended),
			created = min(created, excluded.created)`,
		i.Actor, i.Thread, i.Message, i.State, i.Reason, i.Time, ended)
}

const inputColumns = "actor, thread, message, state, reason, created, ended, seq"

func scanInput(r *sql.Rows) (i ActorInput, err error) {
	err = r.Scan(&i.Actor, &i.Thread, &i.Message, &i.State, &i.Reason, &i.Created, &i.Ended, &i.seq)
	return i, err
}

// PendingInputs lists what the actor has not consumed, the oldest first.
func (db Mail) PendingInputs(ctx context.Context, id agent.ID) ([]ActorInput, error) {
	return Collect(ctx, db.read.Load(), scanInput, "SELECT "+inputColumns+
		" FROM actor_inputs WHERE state = 'pending' AND actor = ? ORDER BY seq", id)
}

// Inputs lists a message's inputs, the oldest first.
func (db Mail) Inputs(ctx context.Context, message string) ([]ActorInput, error) {
	return inputs(ctx, db.read.Load(), message)
}

func inputs(ctx context.Context, q Querier, message string) ([]ActorInput, error) {
	return Collect(ctx, q, scanInput, "SELECT "+inputColumns+" FROM actor_inputs WHERE message = ? ORDER BY seq", message)
}
