package codex

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"netsky/store"
)

// A Recorder puts down what happens. *store.Journal is one.
type Recorder interface {
	Record(ctx context.Context, ops ...store.Op) error
}

// rows keeps the actor_inputs of an agent: what is on its way into a thread, and
// what became of it.
type rows struct {
	o    *SessionOptions
	mute atomic.Bool // it has been said that records fail
}

// put puts down what became of a message. Records never stop a turn: what the
// database does not take waits in the spool, and it is for others to say so.
func (r *rows) put(ctx context.Context, thread, message, state, reason string) {
	if r.o.Records == nil {
		return
	}
	err := r.o.Records.Record(context.WithoutCancel(ctx), store.UpsertInput{
		Actor: r.o.Agent, Thread: thread, Message: message, State: state, Reason: reason, Time: store.At(time.Now()),
	})
	if err != nil && !errors.Is(err, store.ErrSpooled) && r.mute.CompareAndSwap(false, true) {
		r.o.Say(err.Error())
	}
}
