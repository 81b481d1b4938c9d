package courier

import (
	"context"
	"slices"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
)

// A conversation is what the program and the mailbox know of messages: whether the model has
// one, how its turn ended, where its file is.
type conversation struct {
	o       *Options
	trouble func(what string, err error) // logs what fails, once
}

// holds asks the conversation; an error is logged.
func (c conversation) holds(ctx context.Context, id string) (bool, error) {
	held, err := c.o.Runtime.Holds(ctx, id)
	c.trouble("read the conversation", err)
	return held, err
}

// holdsUnseen asks the conversation for a message with which the program has not been
// seen. The conversation knows IDs only: of two messages with the same one it may mean the
// other's, so that this one is offered again.
func (c conversation) holdsUnseen(ctx context.Context, e envelope.Envelope) (bool, error) {
	held, err := c.holds(ctx, e.ID)
	if !held || err != nil {
		return false, err
	}
	list, err := c.o.Bus.Received(ctx, c.o.Agent, e.ID)
	c.trouble("find "+e.ID, err)
	other := func(o bus.Entry) bool { return o.Envelope.ID == e.ID && o.Envelope.From != e.From }
	return err == nil && !slices.ContainsFunc(list, other), err
}

// ends returns a function that asks the conversation how the turn that took a message
// ended, once for each turn.
func (c conversation) ends(ctx context.Context) func(Message) (agent.Event, bool, error) {
	type answer struct {
		e   agent.Event
		ok  bool
		err error
	}
	known := make(map[string]answer)
	return func(o Message) (agent.Event, bool, error) {
		key := o.turn
		if key == "" {
			key = "of " + o.ID
		}
		a, found := known[key]
		if !found {
			a.e, a.ok, a.err = c.o.Runtime.Ended(ctx, o.ID, o.turn)
			c.trouble("read the conversation", a.err)
			known[key] = a
		}
		return a.e, a.ok, a.err
	}
}

// pastEnd returns the end of the turn that took the message: from an event, or if there
// is none from the conversation. over reports that the turn has ended, even if it may be
// continued.
func (c conversation) pastEnd(ctx context.Context, o Message, p past) (e agent.Event, ok, over bool, err error) {
	if exact := p.end != nil && p.turn != "" && p.end.ID == p.turn; !exact {
		own, ok, err := c.o.Runtime.Ended(ctx, o.ID, o.turn)
		switch {
		case err != nil:
			return e, false, false, err
		case ok && own.Error != Interrupted: // otherwise it is continued
			return own, true, true, nil
		case p.end == nil, own.ID != "" && p.end.ID != "" && own.ID != p.end.ID: // it belongs to another turn
			return e, false, ok, nil
		}
	}
	return *p.end, true, true, nil
}

// find finds a message that the agent received and that was not filed unread, and
// returns where it is now; ok is false if it is nowhere. After an error that is
// unknown.
func (c conversation) find(ctx context.Context, o Message) (e envelope.Envelope, p bus.Place, ok bool, err error) {
	list, err := c.o.Bus.Received(ctx, c.o.Agent, o.ID)
	for _, entry := range list {
		if entry.Err == nil && entry.Why == "" && entry.Envelope.ID == o.ID && entry.Envelope.From == o.From {
			return entry.Envelope, entry.Place, true, nil
		}
	}
	return e, "", false, err
}
