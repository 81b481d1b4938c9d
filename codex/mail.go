package codex

import (
	"context"
	"errors"
	"fmt"
	"time"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/codex/appserver"
)

const (
	// MaxText is the longest text that Codex takes, in characters.
	MaxText = 1 << 20
	// reserve is what we may put in front of a message, in bytes.
	reserve = 64 << 10
)

// ResidentLock is held by whoever keeps an agent's thread for longer than a
// message, so that a prompt knows where to go.
func ResidentLock(id agent.ID) string { return "codex-" + string(id) }

// prompt is a message from agent0 that is not on the bus. It is dealt with by
// the holder of the mailbox, whom it makes us for so long.
func (w *once) prompt(ctx context.Context) error {
	w.envelope = envelope.Envelope{
		ID: "prompt-" + agent.NewStart(), From: agent.Root, To: w.Agent, Text: *w.Prompt, Time: time.Now(), Via: "cli",
	}
	if err := w.envelope.Validate(); err != nil {
		return err
	}
	w.rendered = envelope.Render(w.envelope, w.envelope.Time)
	if len(w.rendered) > MaxText-reserve {
		return fmt.Errorf("%w: too long for Codex: %d bytes, at most %d", envelope.ErrInvalid, len(w.rendered), MaxText-reserve)
	}
	name := "receiver-" + string(w.Agent)
	lock, err := w.Home.Lock(name)
	if errors.Is(err, home.ErrLocked) {
		if w.resident() {
			return w.byBus(ctx, "its own Codex is running and takes it; the answer goes to agent0's inbox")
		}
		lock, err = w.Home.WaitLock(ctx, name, func(held error) { w.say(held.Error() + "; waiting for it") })
	}
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if err := w.turn(ctx); !errors.Is(err, appserver.ErrHeld) {
		return err
	}
	return w.byBus(ctx, appserver.ErrHeld.Error()+", so it waits in "+string(w.Agent)+"'s inbox; the answer will go to agent0's")
}

// resident says whether whoever holds the mailbox will deal with its mail: the
// agent's own program, and not another of our kind.
func (w *once) resident() bool {
	if _, ok := w.Home.LockHolder(ResidentLock(w.Agent)); ok {
		return true
	}
	k, err := w.Home.LoadKeeper(w.Agent)
	return err == nil && k.EndedMS == 0 && k.Alive()
}

// byBus leaves the message to whoever has the agent's thread. what says what
// becomes of it: there is no answer yet.
func (w *once) byBus(ctx context.Context, what string) error {
	w.envelope.RequiresAck = true // as a turn of ours would have answered
	receipt, err := w.Bus.Send(ctx, w.envelope)
	if err != nil {
		return err
	}
	fmt.Fprintf(w.Out, "[codex] %s: sent by the bus as %s: %s (`netsky show %[2]s`)\n", w.Agent, receipt.ID, what)
	return nil
}

// drain takes the next message of the agent's inbox.
func (w *once) drain(ctx context.Context) error {
	r, err := w.Bus.Receive(ctx, w.Agent, bus.ReceiveOptions{MaxText: MaxText - reserve, Report: func(what string, err error) {
		if err != nil {
			what += ": " + err.Error()
		}
		w.say(what)
	}})
	if err != nil {
		return err
	}
	defer r.Close()
	if w.delivery, err = w.next(ctx, r); err != nil {
		return err
	}
	w.envelope, w.rendered = w.delivery.Envelope(), w.delivery.Rendered()
	return w.turn(ctx)
}

const (
	look  = 50 * time.Millisecond // how long a message is waited for before the inbox is counted
	giveU = 5 * time.Second       // how long what lies there may turn out to be no message
)

// next is the first message there is. A file that may still be being written is
// waited for until the bus has made up its mind.
func (w *once) next(ctx context.Context, r *bus.Receiver) (*bus.Delivery, error) {
	empty := fmt.Errorf("%w for %s in %s", ErrEmpty, w.Agent, w.Home.Path(home.Mailbox(w.Agent), string(bus.Inbox)))
	for until := time.Now().Add(giveU); ; {
		waiting := 0
		for _, p := range []bus.Place{bus.Inbox, bus.Claimed} {
			n, err := w.Bus.Count(w.Agent, p)
			if err != nil {
				return nil, err
			}
			waiting += n
		}
		if waiting == 0 || time.Now().After(until) {
			return nil, empty
		}
		short, cancel := context.WithTimeout(ctx, look)
		d, err := r.Next(short)
		cancel()
		if d != nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return d, err
		}
	}
}

// reply sends the answer to the message's sender. refused is why that can never
// be; err is anything else that went wrong.
func (w *once) reply(ctx context.Context, a Answer, text string) (refused, err error) {
	switch w.envelope.Kind {
	case envelope.KindReply, envelope.KindError, envelope.KindAck, envelope.KindApprovalAnswer:
		return nil, nil // code does not answer answers
	}
	if (a.Tools > 0 || a.Recovered) && courier.Answered(ctx, w.Bus, w.Agent, w.envelope) {
		return nil, nil // the model has answered by itself
	}
	kind := envelope.KindReply
	if text == "" {
		kind, text = envelope.KindError, "the turn ended without any text"
	}
	return courier.Answer(ctx, w.Bus, w.Agent, w.envelope, kind, text, false)
}
