package claude

import (
	"context"
	"time"

	"netsky/agent"
	"netsky/bus/courier"
)

// Courier returns the session as the courier drives it.
func (s *Session) Courier() courier.Runtime { return conversation{s} }

type conversation struct{ *Session }

// Traits are measured on Claude Code: its messaging socket takes lines of JSON under 1
// MiB, in which each character may be written as two; it accepts 30 texts in a row and
// then one every two seconds, silently drops the rest, and for 30 s ignores a text equal
// to the last.
func (conversation) Traits() courier.Traits {
	return courier.Traits{
		Name: "claude", Batch: 30, BatchBytes: 200 << 10, Text: 480 << 10, Queues: true, Implicit: true,
		Pace: courier.Pace{
			Burst: 25, Every: 2200 * time.Millisecond,
			Unseen: []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second},
			Busy:   250 * time.Millisecond, Idle: time.Second,
			// No hook reports a turn that a person interrupts, or one whose hook was killed;
			// the conversation's file may, and it is written a moment later.
			Told: 2 * time.Second, Silent: 6 * time.Second,
			Begins: 10 * time.Second, Read: 10 * time.Second, Point: time.Minute,
		},
	}
}

// Offer writes the text to the messaging socket.
func (c conversation) Offer(ctx context.Context, o courier.Offer) error { return c.Push(ctx, o.Text) }

// State reports that a text can be offered whenever a session runs: Claude Code queues it.
func (c conversation) State(ctx context.Context) courier.Condition {
	r := c.Session.State(ctx)
	if r.Dialog == limitDialog {
		c.decline(ctx)
	}
	v := courier.Condition{Report: r, Takes: r.State == agent.Idle || r.State == agent.Busy || r.State == agent.Waiting}
	if r.State == agent.Idle {
		v.Works = c.Works()
	}
	return v
}

func (c conversation) Holds(_ context.Context, id string) (bool, error) {
	return c.Session.Holds(id), nil
}

func (c conversation) Ended(_ context.Context, id, turn string) (e agent.Event, ok bool, err error) {
	e, ok = c.Session.Ended(id, turn)
	return e, ok, nil
}

func (c conversation) Interrupt(ctx context.Context, _ agent.ID) error {
	return c.Session.Interrupt(ctx)
}

var (
	_ courier.Pointer    = conversation{}
	_ courier.Meter      = conversation{}
	_ courier.Subscriber = conversation{}
)
