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
	kind envelope.Kind
	text string
	due  time.Time
}

// answers are what is left to do about messages whose turns are over: an answer is sent, the
// file is moved, and the ledger forgets them. What the system refuses is retried. It belongs
// to the goroutine of its courier.
type answers struct {
	o        *Options
	implicit bool // the last text of a turn may not be meant as an answer
	ledger   *ledger
	trouble  func(what string, err error) // logs what fails, once
	finished func(id string)              // is called with each message that is done with

	unsent    []answer
	unfiled   []*bus.Delivery // seen in the program, but the system refused to file them
	unsettled []Message       // finished, but not filed
	tries     time.Time       // when to retry
}

// interrupted is the end of a turn of which nothing more is known.
var interrupted = agent.Event{Event: agent.EventStopFailed, Error: Interrupted}

// verdict returns the answer that the end of its turn is to a message.
func verdict(o Message, e agent.Event) answer {
	a := answer{Message: o, kind: envelope.KindError}
	switch {
	case e.Event == agent.EventStopFailed && e.Error == interrupted.Error:
		a.text = "interrupted: the turn ended without an answer"
	case e.Event == agent.EventStopFailed:
		a.text = "the turn failed: " + failure(e)
	case e.Error != "": // in the program's own words
		a.text = e.Text
	case e.Text == "":
		a.text = "the turn ended without any text"
	default:
		a.kind, a.text = envelope.KindReply, e.Text
	}
	return a
}

// replied reports whether the model itself has answered the message: its turn may fail
// afterwards.
func (s *answers) replied(ctx context.Context, o Message) bool {
	if o.Replied || !o.Wants {
		return o.Replied
	}
	answered, err := s.answered(ctx, o)
	return answered && err == nil
}

// settle removes finished entries from the ledger, once their files are moved: the next
// courier would take a message that is neither filed nor in the ledger for a new one.
func (s *answers) settle(recorded int64, done ...Message) {
	all := append(s.unsettled, done...)
	done, s.unsettled = nil, nil
	for _, o := range all {
		if slices.ContainsFunc(s.unfiled, func(d *bus.Delivery) bool { return o.is(d.Envelope()) }) {
			s.unsettled = append(s.unsettled, o)
		} else {
			done = append(done, o)
		}
	}
	s.trouble("ledger of owed answers", s.ledger.settle(recorded, done...))
	if len(done) > 0 {
		step("settled")
	}
	for _, o := range done {
		s.finished(o.ID)
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
func (s *answers) settling(o Message) bool {
	same := func(l Message) bool { return l.ID == o.ID && l.From == o.From }
	return slices.ContainsFunc(s.unsent, func(a answer) bool { return same(a.Message) }) || slices.ContainsFunc(s.unsettled, same)
}

// retry repeats what the system refused.
func (s *answers) retry(ctx context.Context, now time.Time) {
	if now.Before(s.tries) || len(s.unsent)+len(s.unfiled) == 0 {
		return
	}
	s.tries = now.Add(again)
	unfiled := s.unfiled
	s.unfiled = nil
	for _, d := range unfiled {
		s.file(d)
	}
	if len(s.unfiled) == 0 {
		s.trouble("file delivered mail", nil)
	}
	var done []Message
	var left []answer
	for _, a := range s.unsent {
		if !now.Before(a.due) && s.try(ctx, &a) {
			done = append(done, a.Message)
		} else {
			left = append(left, a)
		}
	}
	s.unsent = left
	s.settle(0, done...)
}

// give sends an answer, unless the model has given one. It reports whether the message is
// finished; an answer that could not be sent is retried.
func (s *answers) give(ctx context.Context, a answer) (done bool) {
	if s.try(ctx, &a) {
		return true
	}
	s.unsent, s.tries = append(s.unsent, a), time.Time{}
	return false
}

func (s *answers) try(ctx context.Context, a *answer) (done bool) {
	answered, err := s.answered(ctx, a.Message)
	if answered {
		return true
	}
	var refused error
	if err == nil {
		refused, err = s.send(ctx, a)
	}
	a.due = time.Now().Add(again)
	switch {
	case refused != nil:
		s.o.Log(fmt.Sprintf("%s from %s gets no answer", a.ID, a.From), refused)
		return true
	case errors.Is(err, bus.ErrBrake):
		a.due = time.Now().Add(brakedAgain)
	}
	s.trouble("answer "+a.ID, err)
	step("answered")
	return err == nil
}

// file confirms a delivery. What the system refuses is retried.
func (s *answers) file(d *bus.Delivery) {
	err := d.Confirm()
	if err != nil && !errors.Is(err, bus.ErrClosed) {
		s.trouble("file delivered mail", err)
		s.unfiled = append(s.unfiled, d)
		s.tries = time.Now().Add(again)
		return
	}
	step("filed")
}

// answered reports whether this agent has answered the message in any way.
func (s *answers) answered(ctx context.Context, o Message) (bool, error) {
	since := time.UnixMilli(min(o.SentMS, o.OfferedMS)) // the sender's clock may be ahead of ours
	return s.o.Bus.Answered(ctx, s.o.Agent, envelope.Envelope{ID: o.ID, From: o.From, Time: since})
}

// send sends an answer. refused is why it can never be sent.
func (s *answers) send(ctx context.Context, a *answer) (refused, err error) {
	to := envelope.Envelope{ID: a.ID, From: a.From, Thread: a.Thread, Hops: a.Hops}
	var extra map[string]json.RawMessage
	switch {
	case a.State == StateCancelled:
		extra = envelope.Withdrawn()
	case s.implicit && a.kind == envelope.KindReply:
		extra = map[string]json.RawMessage{"implicit": json.RawMessage("true")}
	}
	return Answer(ctx, s.o.Bus, s.o.Agent, to, a.kind, a.text, extra)
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
