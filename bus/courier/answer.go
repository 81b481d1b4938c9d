package courier

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
)

const (
	brakedAgain = 5 * time.Second // between tries of an answer that a brake stops, of which the bus tells the owner
	shortened   = 100_000         // bytes of an answer that is too long for the bus
)

// An answer is what netsky sends on behalf of the model.
type answer struct {
	Message
	kind      envelope.Kind
	text      string
	cancelled bool // the message was
	due       time.Time
}

// interrupted is the end of a turn of which nothing more is known.
var interrupted = agent.Event{Event: agent.EventStopFailed, Error: Interrupted}

// verdict returns what a turn's end means to those who wait for an answer.
func verdict(e agent.Event) (kind envelope.Kind, text string) {
	switch {
	case e.Event == agent.EventStopFailed && e.Error == interrupted.Error:
		return envelope.KindError, "interrupted: the turn ended without an answer"
	case e.Event == agent.EventStopFailed:
		return envelope.KindError, "the turn failed: " + failure(e)
	case e.Error != "": // in the program's own words
		return envelope.KindError, e.Text
	case e.Text == "":
		return envelope.KindError, "the turn ended without any text"
	}
	return envelope.KindReply, e.Text
}

// close ends the turn: every message that it took is answered or needs no answer.
func (m *Courier) close(ctx context.Context, e Event) {
	m.open, m.turnOf = false, ""
	asked := m.ends(ctx)
	var done []Message
	var held []failed
	for _, o := range m.ledger.seen() {
		if m.settling(o) {
			continue
		}
		if _, waits := m.deferred[o.ID]; waits {
			m.open = true
			continue
		}
		end, ok, err := endOf(o, e.Event, asked)
		if !ok {
			if err == nil {
				m.ledger.late(o.ID)
			}
			m.open = true
			continue
		}
		if noAnswer(end) && !m.replied(ctx, o) {
			held = append(held, failed{o, end})
			continue
		}
		a := answer{Message: o}
		a.kind, a.text = verdict(end)
		if !o.Wants || e.Deferred || m.give(ctx, &a) {
			done = append(done, o)
			continue
		}
		m.unsent = append(m.unsent, a)
		m.tries = time.Time{}
	}
	if len(held) > 0 {
		m.hold(ctx, held...)
	} else if ofAccount(e.Event) { // of a turn that took no message
		m.gate.trip(ctx, *e.Fault)
	} else {
		m.gate.release(ctx)
	}
	m.settle(e.MS, done...)
}

// replied reports whether the model itself has answered the message: its turn may fail
// afterwards.
func (m *Courier) replied(ctx context.Context, o Message) bool {
	if o.Replied || !o.Wants {
		return o.Replied
	}
	answered, err := m.answered(ctx, o)
	return answered && err == nil
}

// settle removes finished entries from the ledger, once their files are moved: the next
// courier would take a message that is neither filed nor in the ledger for a new one.
func (m *Courier) settle(recorded int64, done ...Message) {
	all := append(m.unsettled, done...)
	done, m.unsettled = nil, nil
	for _, o := range all {
		if slices.ContainsFunc(m.unfiled, func(d *bus.Delivery) bool { return o.is(d.Envelope()) }) {
			m.unsettled = append(m.unsettled, o)
		} else {
			done = append(done, o)
		}
	}
	m.trouble("ledger of owed answers", m.ledger.settle(recorded, done...))
	if len(done) > 0 {
		step("settled")
	}
	for _, o := range done {
		delete(m.losses, o.ID)
		if r, ok := m.o.Runtime.(Settler); ok {
			r.Settled(o.ID)
		}
	}
}

// endOf returns the end of the turn that took the message; e is that of the last turn.
// They differ if the process that should have reported the former was killed: then the
// conversation is asked, and once more later, as it is written a moment after the turn; what
// it does not know yet is nobody else's.
func endOf(o Message, e agent.Event, asked func(Message) (agent.Event, bool, error)) (end agent.Event, ok bool, err error) {
	if !o.Wants || o.turn != "" && o.turn == e.ID {
		return e, true, nil
	}
	own, ok, err := asked(o)
	switch {
	case err != nil:
		return end, false, err
	case ok:
		return own, true, nil
	case e.ID == "" || cmp.Or(own.ID, o.turn) == e.ID: // turns have no numbers, or it is the same turn
		return e, true, nil
	}
	return interrupted, o.late, nil
}

// settling reports whether a message's turn is over, and only its answer is to be sent or
// its file to be moved.
func (m *Courier) settling(o Message) bool {
	same := func(l Message) bool { return l.ID == o.ID && l.From == o.From }
	return slices.ContainsFunc(m.unsent, func(a answer) bool { return same(a.Message) }) || slices.ContainsFunc(m.unsettled, same)
}

// retry repeats what the system refused.
func (m *Courier) retry(ctx context.Context, now time.Time) {
	if now.Before(m.tries) || len(m.unsent)+len(m.unfiled) == 0 {
		return
	}
	m.tries = now.Add(again)
	unfiled := m.unfiled
	m.unfiled = nil
	for _, d := range unfiled {
		m.file(d)
	}
	if len(m.unfiled) == 0 {
		m.trouble("file delivered mail", nil)
	}
	var done []Message
	var left []answer
	for _, a := range m.unsent {
		if !now.Before(a.due) && m.give(ctx, &a) {
			done = append(done, a.Message)
		} else {
			left = append(left, a)
		}
	}
	m.unsent = left
	m.settle(0, done...)
}

// give sends an answer, unless the model has given one. It reports whether the message is
// finished.
func (m *Courier) give(ctx context.Context, a *answer) (done bool) {
	answered, err := m.answered(ctx, a.Message)
	if answered {
		return true
	}
	var refused error
	if err == nil {
		refused, err = m.send(ctx, a)
	}
	a.due = time.Now().Add(again)
	switch {
	case refused != nil:
		m.o.Log(fmt.Sprintf("%s from %s gets no answer", a.ID, a.From), refused)
		return true
	case errors.Is(err, bus.ErrBrake):
		a.due = time.Now().Add(brakedAgain)
	}
	m.trouble("answer "+a.ID, err)
	step("answered")
	return err == nil
}

// answered reports whether this agent has answered the message in any way.
func (m *Courier) answered(ctx context.Context, o Message) (bool, error) {
	since := time.UnixMilli(min(o.SentMS, o.OfferedMS)) // the sender's clock may be ahead of ours
	return m.o.Bus.Answered(ctx, m.o.Agent, envelope.Envelope{ID: o.ID, From: o.From, Time: since})
}

// send sends an answer. refused is why it can never be sent.
func (m *Courier) send(ctx context.Context, a *answer) (refused, err error) {
	to := envelope.Envelope{ID: a.ID, From: a.From, Thread: a.Thread, Hops: a.Hops}
	var extra map[string]json.RawMessage
	switch {
	case a.cancelled:
		extra = envelope.Withdrawn()
	case m.traits.Implicit && a.kind == envelope.KindReply:
		extra = map[string]json.RawMessage{"implicit": json.RawMessage("true")}
	}
	return Answer(ctx, m.o.Bus, m.o.Agent, to, a.kind, a.text, extra)
}

// Answer sends netsky's one answer to a message on behalf of an agent; its ID depends on
// the two alone, so sending it again has no further effect. extra are further fields, or
// nil. A reply too long for the bus is cut and says by how much. refused is why it can never
// be sent.
func Answer(ctx context.Context, b *bus.Bus, from agent.ID, to envelope.Envelope, kind envelope.Kind, text string, extra map[string]json.RawMessage) (refused, err error) {
	e := envelope.Envelope{
		ID: envelope.AnswerID(from, to.ID, envelope.KindReply), From: from, To: to.From, Kind: kind, Text: envelope.SafeText(text),
		InReplyTo: to.ID, Thread: to.Thread, Hops: to.Hops + 1, Via: "code",
		Extra: extra,
	}
	_, err = b.Send(ctx, e)
	if errors.Is(err, envelope.ErrInvalid) && len(e.Text) > shortened {
		e.Text = envelope.Shorten(e.Text, shortened)
		_, err = b.Send(ctx, e)
	}
	for _, never := range []error{bus.ErrNotAllowed, bus.ErrNoMailbox, envelope.ErrInvalid, bus.ErrHops} {
		if errors.Is(err, never) {
			return err, nil
		}
	}
	return nil, err
}
