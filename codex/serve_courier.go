package codex

import (
	"context"
	"errors"
	"time"

	"netsky/agent"
	"netsky/bus/courier"
	"netsky/codex/appserver"
)

// Traits returns those of one turn at a time, on a connection that reports events in
// order.
func (r *resident) Traits() courier.Traits {
	return courier.Traits{
		Name: "codex", Batch: 1, BatchBytes: MaxText - reserve, Text: MaxText - reserve, Leaves: true, Losses: maxLosses,
		Pace: courier.Pace{
			Unseen: []time.Duration{2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second},
			Busy:   250 * time.Millisecond, Idle: time.Second,
			Told: 2 * time.Second, Silent: 30 * time.Second, Begins: time.Second,
		},
	}
}

// State is derived from the thread's events.
func (r *resident) State(context.Context) courier.Condition {
	r.mu.Lock()
	defer r.mu.Unlock()
	return courier.Condition{Report: r.report(), Takes: r.takes()}
}

// Account names the login that Codex would use now.
func (r *resident) Account() (name string, changed time.Time) { return r.login.account() }

// Offer submits the text under the message's ID.
func (r *resident) Offer(ctx context.Context, o courier.Offer) error {
	r.offering.Lock()
	defer r.offering.Unlock()
	id := o.About[0] // there are no others
	r.mu.Lock()
	if !r.takes() {
		r.mu.Unlock()
		return courier.ErrNotReady
	}
	if outdated, _ := r.outdated(); outdated {
		r.mu.Unlock()
		select {
		case r.renew <- struct{}{}:
		default:
		}
		return courier.ErrNotReady
	}
	t, now := r.thread, r.now
	r.now, r.handed = agent.Report{State: agent.Busy, Detail: "turn"}, handed{id: id}
	r.mu.Unlock()
	for _, e := range o.Messages {
		r.print.message(e)
	}
	turn, err := r.submit(ctx, t, id, o.Text)
	if err == nil {
		r.mu.Lock()
		r.handed.turn = turn.ID
		r.mu.Unlock()
		if r.Limit > 0 {
			r.group.Go(func() { r.limit(turn) })
		}
		return nil
	}
	switch {
	case errors.Is(err, appserver.ErrLost):
		return err // and the state is keep's
	case errors.Is(err, context.DeadlineExceeded):
		return err // likewise: the connection is dropped
	case appserver.Refused(err):
		r.queue.Put(
			courier.Event{Event: agent.Event{Event: agent.EventPrompt, IDs: o.About}},
			courier.Event{Event: agent.Event{Event: agent.EventStopFailed, Text: err.Error()}},
		)
		err, now = nil, agent.Report{State: agent.Idle, Detail: "last turn failed: " + err.Error()}
	}
	r.show(now)
	return err
}

// submit records that a message is submitted, then submits it.
func (r *resident) submit(ctx context.Context, t *appserver.Thread, id, text string) (*appserver.Turn, error) {
	if err := r.session.submitting(ctx, t.ID(), id); err != nil {
		return nil, err
	}
	turn, err := t.Start(ctx, id, text)
	if err != nil {
		r.session.refused(ctx, t, id, err)
	}
	return turn, err
}

// limit interrupts a turn that runs too long.
func (r *resident) limit(turn *appserver.Turn) {
	timer := time.NewTimer(r.Limit)
	defer timer.Stop()
	select {
	case <-turn.Done():
		return
	case <-timer.C:
	}
	r.mu.Lock()
	if !turn.Over() { // otherwise nobody would retract it
		r.overdue = turn.ID
	}
	r.mu.Unlock()
	turn.BreakOff()
}

// Holds reports whether the thread's history contains the message.
func (r *resident) Holds(ctx context.Context, id string) (bool, error) {
	past, err := r.past(ctx, id, "")
	if past != nil {
		r.session.accepted(ctx, id) // it may not have been reported
	}
	return past != nil, err
}

// Ended returns how a turn ended, according to the thread's history.
func (r *resident) Ended(ctx context.Context, id, turn string) (e agent.Event, ok bool, err error) {
	past, err := r.past(ctx, id, turn)
	if err != nil || past == nil {
		return e, false, err
	}
	e = agent.Event{Event: agent.EventStopFailed, ID: past.Result.Turn}
	switch err := past.Err; {
	case past.Running != nil:
		e.ID = past.Running.ID
		return e, false, nil
	case err == nil:
		e.Event, e.Text = agent.EventStop, ExtractReply(past.Result.Text)
	case errors.Is(err, appserver.ErrInterrupted):
		e.Error = courier.Interrupted
	default:
		e.Text, e.Fault = err.Error(), r.fault(err)
	}
	return e, true, nil
}

// past finds a turn in the history of the open thread.
func (r *resident) past(ctx context.Context, id, turn string) (*appserver.Past, error) {
	t := r.opened()
	if t == nil {
		return nil, errors.New("not connected to Codex yet")
	}
	return t.Find(ctx, id, turn)
}

// Interrupt interrupts the running turn, whoever started it.
func (r *resident) Interrupt(ctx context.Context, _ agent.ID) error {
	t := r.opened()
	if t == nil || t.Running() == nil {
		return errors.New("no turn is running")
	}
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	return t.Interrupt(ctx)
}

// Halt pauses the goal on which Codex begins turn after turn; an error if there is none.
func (r *resident) Halt(ctx context.Context) error {
	t := r.opened()
	if t == nil {
		return errors.New("not connected to Codex yet")
	}
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	return t.PauseGoal(ctx)
}
