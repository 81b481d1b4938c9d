package demo

import (
	"context"
	"fmt"
	"strings"

	"netsky/agent"
	"netsky/bus/courier"
	"netsky/bus/envelope"
)

// A request is something asked of the demo, by mail or by a person at the pane.
type request struct {
	text string
	mail envelope.Envelope // the zero envelope if it was typed
}

// An outcome is the result of a request.
type outcome struct {
	text   string                          // the answer
	failed bool                            // it is an error
	silent bool                            // there is none, or not yet
	after  func(ctx context.Context) error // to do when the message is settled

	endless bool         // the turn does not end: after is done at once
	fault   *agent.Fault // the turn fails of it, and there is no answer
}

// receive handles one message. The courier files it and sends the answer: it gets both
// events together. A message that a crash interrupts is offered again, and answered
// under the same id.
func (d *demo) receive(ctx context.Context, o courier.Offer) error {
	e := o.Messages[0]
	done := d.turn()
	defer done()
	d.pane.message(e)
	out, err := outcome{fault: d.limited()}, error(nil)
	if out.fault == nil {
		out, err = d.deal(ctx, e)
	}
	if err != nil {
		return err
	}
	number := agent.NewStart()
	begin := courier.Event{Event: agent.Event{Event: agent.EventPrompt, ID: number, IDs: o.About}}
	switch {
	case out.endless:
		d.queue.Put(begin)
		return out.after(ctx)
	case out.fault != nil:
		d.pane.note(out.fault.String())
		d.queue.Put(begin, courier.Event{Event: agent.Event{Event: agent.EventStopFailed, ID: number, Text: out.fault.Text, Fault: out.fault}})
		return nil
	}
	settled := d.answering(e, out)
	end := courier.Event{Event: agent.Event{Event: agent.EventStop, ID: number, Text: out.text}, Deferred: out.silent}
	if out.failed {
		end.Error = "refused"
	}
	d.queue.Put(begin, end)
	if out.after == nil {
		return nil
	}
	select {
	case <-settled:
	case <-d.over:
		return nil // serve will see it
	case <-ctx.Done():
		return ctx.Err()
	}
	return out.after(ctx)
}

// deal handles a message's request.
func (d *demo) deal(ctx context.Context, e envelope.Envelope) (outcome, error) {
	switch e.Kind {
	case envelope.KindReply, envelope.KindError:
		return outcome{silent: true}, d.passOn(ctx, e)
	case envelope.KindAck, envelope.KindShutdown, envelope.KindShutdownAck, envelope.KindCancel, envelope.KindHeld, envelope.KindApproval, envelope.KindApprovalAnswer:
		return outcome{silent: true}, nil
	}
	d.be(ctx, agent.Busy, "answers "+string(e.From))
	if ball, ok := parseBall(e); ok {
		return outcome{silent: true}, d.hitBack(ctx, e, ball)
	}
	return d.do(ctx, request{text: ask(e), mail: e})
}

// ask returns what a message asks for: of a task that is the first line of its body, if that is a
// command.
func ask(e envelope.Envelope) string {
	if e.Kind == envelope.KindBrief && strings.HasPrefix(e.Text, "Task ") {
		if _, body, ok := strings.Cut(e.Text, "\n\n"); ok && strings.HasPrefix(body, "/") {
			line, _, _ := strings.Cut(body, "\n")
			return line
		}
	}
	return e.Text
}

// typed handles a line typed in the pane; it is answered only there.
func (d *demo) typed(ctx context.Context, line string) error {
	d.pane.entered()
	line = strings.TrimSpace(line)
	if line == "" {
		return nil
	}
	done := d.turn()
	defer done()
	out, err := d.do(ctx, request{text: line})
	if err != nil {
		return err
	}
	if !out.silent {
		d.pane.note(out.text)
	}
	if out.after != nil {
		return out.after(ctx)
	}
	return nil
}

// do is the demo's whole mind.
func (d *demo) do(ctx context.Context, q request) (outcome, error) {
	text := strings.TrimSpace(q.text)
	if strings.HasPrefix(text, "/") {
		return d.command(ctx, q, text)
	}
	if strings.Contains(strings.ToLower(text), "your name") {
		return outcome{text: fmt.Sprintf("My name is %s. I am a demo agent, a small program without a model. /help lists what I can do.", d.Agent)}, nil
	}
	return outcome{text: fmt.Sprintf("%s (demo) received: %s", d.Agent, shorten(text, 2000))}, nil
}

// answer sends the one answer to a message whose turn ended long ago. Its id is the
// same as a courier's, so that a message never gets two. A refusal by the bus is shown
// in the pane; it would be refused the next time too.
func (d *demo) answer(ctx context.Context, e envelope.Envelope, text string, failed bool) error {
	kind := envelope.KindReply
	if failed {
		kind = envelope.KindError
	}
	refusal, err := d.send(ctx, envelope.Envelope{
		ID: envelope.AnswerID(d.Agent, e.ID, envelope.KindReply), To: e.From, Kind: kind, Text: text,
		InReplyTo: e.ID, Thread: e.Thread, Hops: e.Hops + 1,
	})
	if refusal != nil {
		d.pane.note(fmt.Sprintf("%s got no answer: %v", e.From, refusal))
	}
	return err
}

// send sends as this agent and shows it. refusal is the bus's refusal of this envelope;
// err is anything else, after which the demo cannot continue.
func (d *demo) send(ctx context.Context, e envelope.Envelope) (refusal, err error) {
	e.From, e.Via = d.Agent, "code"
	err = d.durable(ctx, func() error {
		_, err := d.Bus.Send(ctx, e)
		return err
	})
	if isOneOf(err, verdicts) {
		return err, nil
	}
	if err != nil {
		return nil, fmt.Errorf("send to %s: %w", e.To, err)
	}
	d.pane.sent(e)
	return nil, nil
}

// shorten cuts a text to max characters.
func shorten(text string, max int) string {
	for i := range text {
		if max--; max < 0 {
			return text[:i] + "…"
		}
	}
	return text
}
