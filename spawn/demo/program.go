package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"netsky/agent"
	"netsky/bus/courier"
	"netsky/bus/envelope"
)

// courierSide is what the demo's goroutine and its courier share.
type courierSide struct {
	offers chan courier.Offer // the one that is accepted and not started

	mu      sync.Mutex // guards the fields below
	report  agent.Report
	free    bool          // it can be offered a message
	ending  chan agent.ID // who interrupts the running turn; nil between turns
	answers map[string]answering
}

// An answering is a message that has been handled and is not settled.
type answering struct {
	answer envelope.Envelope // as the pane shows it; without text there is none
	done   chan struct{}     // closed when it is settled
}

// be sets the state and waits until it is reported: what the pane shows after it can be
// relied on. false means that the courier or ctx has ended.
func (d *demo) be(ctx context.Context, state agent.State, detail string) bool {
	d.mu.Lock()
	changed := d.report.State != state || d.report.Detail != detail
	d.report.State, d.report.Detail = state, detail
	d.free = state == agent.Idle && len(d.offers) == 0
	d.mu.Unlock()
	d.queue.Put(courier.Event{Event: agent.Event{Event: courier.EventState}})
	return !changed || d.look(ctx)
}

// turn begins a turn, which an interrupt may end until done is called. An interrupt
// between two turns is ignored.
func (d *demo) turn() (done func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free = false
	d.ending = make(chan agent.ID, 1) // the first one is enough
	return func() {
		d.mu.Lock()
		d.ending = nil
		d.mu.Unlock()
	}
}

// interrupts receives the interrupt of the running turn.
func (d *demo) interrupts() <-chan agent.ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ending
}

// answering records what to show when the message is settled.
func (d *demo) answering(e envelope.Envelope, out outcome) (settled <-chan struct{}) {
	a := answering{done: make(chan struct{})}
	if !out.silent {
		a.answer = envelope.Envelope{To: e.From, Kind: envelope.KindReply, Text: out.text}
		if out.failed {
			a.answer.Kind = envelope.KindError
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.answers == nil {
		d.answers = make(map[string]answering)
	}
	d.answers[e.ID] = a
	return a.done
}

// program is the demo as its courier sees it.
type program struct{ d *demo }

func (program) Traits() courier.Traits {
	return courier.Traits{
		Name: "demo", Batch: 1, BatchBytes: 1 << 20, Leaves: true, Wants: wantsAnswer,
		Pace: courier.Pace{
			Unseen: []time.Duration{time.Minute}, Busy: time.Second, Idle: 5 * time.Second,
			Told: time.Minute, Silent: time.Hour, Read: time.Minute, Point: time.Minute,
		},
	}
}

// wantsAnswer: a demo answers everything that is not an answer itself, so that a first
// try of netsky gets one, and two demos don't talk forever.
func wantsAnswer(e envelope.Envelope) bool {
	switch e.Kind {
	case envelope.KindReply, envelope.KindError, envelope.KindAck, envelope.KindHeld, envelope.KindApproval, envelope.KindApprovalAnswer:
		return false
	}
	_, ball := parseBall(e)
	return !ball
}

func (p program) Offer(_ context.Context, o courier.Offer) error {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	if !p.d.free || len(o.Messages) != 1 {
		return courier.ErrNotReady
	}
	p.d.free = false
	p.d.report.State = agent.Busy
	p.d.offers <- o
	return nil
}

func (p program) State(context.Context) courier.Condition {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	return courier.Condition{Report: p.d.report, Takes: p.d.free}
}

func (program) Holds(context.Context, string) (bool, error) { return false, nil }

// Ended knows of a /hang, whose turn does not end before the program does. Another turn
// leaves its message claimed until it ends, so that it is offered again.
func (p program) Ended(ctx context.Context, id, _ string) (e agent.Event, ok bool, err error) {
	list, err := p.d.Bus.Received(ctx, p.d.Agent, id)
	for _, m := range list {
		if name, _ := split(m.Envelope.Text); m.Err == nil && name == hangs {
			return agent.Event{Event: agent.EventStopFailed, Text: fmt.Sprintf("%s (demo) was ended while it hung, as the message told it to", p.d.Agent)}, true, nil
		}
	}
	return e, false, err
}

func (p program) Interrupt(_ context.Context, by agent.ID) error {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	if p.d.ending == nil {
		return errors.New("no turn is running")
	}
	select {
	case p.d.ending <- by:
	default: // it is shutting down
	}
	return nil
}

// Account names the account that all demos share.
func (program) Account() (string, time.Time) { return account, time.Time{} }

// Settled shows the answer, which has now been sent.
func (p program) Settled(id string) {
	p.d.mu.Lock()
	a, ok := p.d.answers[id]
	delete(p.d.answers, id)
	p.d.mu.Unlock()
	if !ok {
		return // of an earlier start
	}
	if a.answer.Text != "" {
		p.d.pane.sent(a.answer)
	}
	close(a.done)
}
