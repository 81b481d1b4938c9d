package mcp

import (
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
	wordReply = envelope.KindReply
	wordError = envelope.KindError

	brakedTries = 24 // for an answer that a brake holds up
	brakedAgain = 5 * time.Second
	shortened   = 100_000 // bytes of an answer that is too long for the bus
)

// An answer is what code says for the model.
type answer struct {
	owed
	kind  envelope.Kind
	text  string
	tries int
	due   time.Time
}

// interrupted is the end of a turn of which nothing more is known.
var interrupted = agent.Event{Event: agent.EventStopFailed, Error: "interrupted"}

// verdict is what a turn's end says to those who wait for an answer.
func verdict(e agent.Event) (kind envelope.Kind, text string) {
	switch {
	case e.Event == agent.EventStopFailed && e.Error == interrupted.Error:
		return wordError, "interrupted: the turn ended, and no answer was given"
	case e.Event == agent.EventStopFailed:
		return wordError, "the turn failed: " + failure(e)
	case e.Text == "":
		return wordError, "the turn ended without a word"
	}
	return wordReply, e.Text
}

// close ends the turn: every message that it took has its answer or is let go.
func (m *Mailman) close(ctx context.Context, e agent.Event) {
	m.open, m.turnOf = false, ""
	asked := m.ends()
	var done []owed
	for _, o := range m.ledger.list(true) {
		if m.isUnsent(o) {
			continue
		}
		end, ok := endOf(o, e, asked)
		if !ok {
			m.ledger.late(o.ID)
			m.open = true
			continue
		}
		a := answer{owed: o}
		a.kind, a.text = verdict(end)
		if !o.Wants || m.give(ctx, &a) {
			done = append(done, o)
			continue
		}
		m.unsent = append(m.unsent, a)
		m.tries = time.Time{}
	}
	m.trouble("settle what was owed", m.ledger.settle(e.MS, done...))
}

// endOf is the end of the turn that took the message, where e is that of the last.
// They differ if what should have told of the former was killed: then the
// conversation is asked, once more at the next occasion, for it is written a
// moment later.
func endOf(o owed, e agent.Event, asked func(owed) (agent.Event, bool)) (end agent.Event, ok bool) {
	if !o.Wants || o.turn != "" && o.turn == e.ID {
		return e, true
	}
	own, ok := asked(o)
	switch {
	case ok:
		return own, true
	case own.ID == "" || e.ID == "" || own.ID == e.ID: // nobody counts turns, or it is the same
		return e, true
	}
	return interrupted, o.late
}

func (m *Mailman) isUnsent(o owed) bool {
	return slices.ContainsFunc(m.unsent, func(a answer) bool { return a.ID == o.ID && a.From == o.From })
}

// retry does again what the system refused.
func (m *Mailman) retry(ctx context.Context, now time.Time) {
	if now.Before(m.tries) || len(m.unsent)+len(m.unfiled) == 0 {
		return
	}
	m.tries = now.Add(m.pace(again))
	unfiled := m.unfiled
	m.unfiled = nil
	for _, d := range unfiled {
		m.file(d)
	}
	if len(m.unfiled) == 0 {
		m.trouble("file what was seen", nil)
	}
	var done []owed
	var left []answer
	for _, a := range m.unsent {
		if !now.Before(a.due) && m.give(ctx, &a) {
			done = append(done, a.owed)
		} else {
			left = append(left, a)
		}
	}
	m.unsent = left
	m.trouble("settle what was owed", m.ledger.settle(0, done...))
}

// give sends an answer, unless the model has given one. It reports whether there
// is nothing more to do about the message.
func (m *Mailman) give(ctx context.Context, a *answer) (done bool) {
	if m.answered(ctx, a.owed) {
		return true
	}
	refused, err := m.send(ctx, a)
	a.tries++
	a.due = time.Now().Add(m.pace(again))
	switch {
	case refused != nil:
		m.o.Log(fmt.Sprintf("%s of %s gets no answer", a.ID, a.From), refused)
		return true
	case errors.Is(err, bus.ErrBrake) && a.tries >= brakedTries:
		m.o.Log(fmt.Sprintf("%s of %s gets no answer", a.ID, a.From), err)
		return true
	case errors.Is(err, bus.ErrBrake):
		a.due = time.Now().Add(m.pace(brakedAgain))
	}
	m.trouble("answer "+a.ID, err)
	return err == nil
}

// answered reports whether the message has had an answer of ours, by whichever
// way.
func (m *Mailman) answered(ctx context.Context, o owed) bool {
	found, ok, err := m.o.Bus.FindAnswer(ctx, o.From, o.ID, time.UnixMilli(o.SentMS).Add(-time.Second))
	return err == nil && ok && found.Envelope.From == m.o.Agent
}

// send sends an answer. refused is why that can never be.
func (m *Mailman) send(ctx context.Context, a *answer) (refused, err error) {
	e := envelope.Envelope{
		ID: envelope.AnswerID(m.o.Agent, a.ID, envelope.KindReply), From: m.o.Agent, To: a.From, Kind: a.kind, Text: envelope.SafeText(a.text),
		InReplyTo: a.ID, Thread: a.Thread, Hops: a.Hops + 1, Via: "code",
	}
	if a.kind == wordReply {
		e.Extra = map[string]json.RawMessage{"implicit": json.RawMessage("true")}
	}
	_, err = m.o.Bus.Send(ctx, e)
	if errors.Is(err, envelope.ErrInvalid) && len(e.Text) > shortened {
		e.Text = clip(e.Text, shortened)
		_, err = m.o.Bus.Send(ctx, e)
	}
	for _, never := range []error{bus.ErrNotAllowed, bus.ErrNoMailbox, envelope.ErrInvalid, bus.ErrHops} {
		if errors.Is(err, never) {
			return err, nil
		}
	}
	return nil, err
}
