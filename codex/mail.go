package codex

import (
	"context"
	"errors"
	"fmt"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/codex/appserver"
	"netsky/home"
	"netsky/store"
)

const (
	// MaxText is the longest text that Codex accepts, in characters.
	MaxText = 1 << 20
	// reserve is the most that netsky puts in front of a message, in bytes.
	reserve = 64 << 10
)

// ResidentLock is held by a process that keeps an agent's thread for longer than a
// message, so that a prompt knows where to go.
func ResidentLock(id agent.ID) string { return "codex-" + string(id) }

// prompt processes a message from agent0 that is not on the bus. Only the holder of the
// mailbox may do that, so it holds the mailbox for that time.
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
			return w.byBus(ctx, "its own Codex is running and will process it; the answer goes to agent0's inbox")
		}
		lock, err = w.Home.WaitLock(ctx, name, func(held error) { w.say(held.Error() + "; waiting for it") })
	}
	if err != nil {
		return err
	}
	defer lock.Unlock()
	m := w.envelope
	w.note(ctx, store.UpsertMessage{ID: m.ID, From: m.From, To: m.To, Text: m.Text, Time: store.At(m.Time), Via: m.Via})
	if err := w.turn(ctx); !errors.Is(err, appserver.ErrHeld) {
		d := store.UpsertDelivery{Message: m.ID, From: m.From, Target: m.To, State: store.Delivered, Queued: store.At(m.Time)}
		if err != nil {
			d.State, d.Reason = store.Failed, envelope.Line(err.Error(), 300)
		}
		w.note(ctx, d)
		return err
	}
	return w.byBus(ctx, appserver.ErrHeld.Error()+"; the message waits in "+string(w.Agent)+"'s inbox, and the answer will go to agent0's")
}

// note records what no mailbox shows: a prompt that is processed without one. That nothing
// can be recorded is said by the session.
func (w *once) note(ctx context.Context, op store.Op) {
	if w.Records != nil {
		_ = w.Records.Record(context.WithoutCancel(ctx), op)
	}
}

// resident reports whether the holder of the mailbox will process its mail: whether it
// is the agent's own program, and not another Once.
func (w *once) resident() bool {
	if _, ok := w.Home.LockHolder(ResidentLock(w.Agent)); ok {
		return true
	}
	k, err := w.Home.LoadKeeper(w.Agent)
	return err == nil && k.EndedMS == 0 && k.Alive()
}

// byBus leaves the message to the process that has the agent's thread. what tells the
// caller what happens to it: there is no answer yet.
func (w *once) byBus(ctx context.Context, what string) error {
	w.envelope.RequiresAck = true // as a turn in this process would have answered
	receipt, err := w.Bus.Send(ctx, w.envelope)
	if err != nil {
		return err
	}
	fmt.Fprintf(w.Out, "[codex] %s: sent over the bus as %s: %s (`netsky show %[2]s`)\n", w.Agent, receipt.ID, what)
	return nil
}

// drain processes the next message in the agent's inbox.
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
	if err := w.closed(ctx); err != nil {
		return err // before anything is claimed
	}
	if w.delivery, err = w.next(ctx, r); err != nil {
		return err
	}
	w.envelope, w.rendered = w.delivery.Envelope(), w.delivery.Rendered()
	return w.turn(ctx)
}

const (
	look        = 50 * time.Millisecond // how long to wait for a message before the inbox is counted
	judgeWithin = 5 * time.Second       // how long to wait for files that may turn out not to be messages
)

// next returns the first message. It waits for a file that may still be being written
// until the bus has decided what it is.
func (w *once) next(ctx context.Context, r *bus.Receiver) (*bus.Delivery, error) {
	empty := fmt.Errorf("%w for %s in %s", ErrEmpty, w.Agent, w.Home.Path(home.Mailbox(w.Agent), string(bus.Inbox)))
	for until := time.Now().Add(judgeWithin); ; {
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

// reply sends the answer to the message's sender. refused is why that will never be
// possible; err is any other error.
func (w *once) reply(ctx context.Context, a Answer, text string) (refused, err error) {
	switch w.envelope.Kind {
	case envelope.KindReply, envelope.KindError, envelope.KindAck, envelope.KindApprovalAnswer:
		return nil, nil // code does not answer replies
	}
	if a.Tools > 0 || a.Recovered {
		if answered, err := w.Bus.Answered(ctx, w.Agent, w.envelope); answered || err != nil {
			return nil, err // the model has already answered with a tool or a verb
		}
	}
	kind := envelope.KindReply
	if text == "" {
		kind, text = envelope.KindError, "the turn ended without any text"
	}
	return courier.Answer(ctx, w.Bus, w.Agent, w.envelope, kind, text, nil)
}
