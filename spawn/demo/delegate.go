package demo

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"netsky/agent"
	"netsky/bus/envelope"
)

// delegate sends a brief to another agent and does not wait. The job is stored before
// the brief is sent, and the brief's id is derived from the message that asked for it:
// after a crash in between, the same brief is sent under the same id.
func (d *demo) delegate(ctx context.Context, q request, arg string) (outcome, error) {
	to, text, err := target(arg)
	if err != nil || text == "" {
		return outcome{failed: true, text: "/delegate ADDRESS TEXT: no such address or no text"}, nil
	}
	e := envelope.Envelope{ID: d.causedID(q, envelope.KindBrief), To: to, Kind: envelope.KindBrief, Text: text, Thread: cmp.Or(q.mail.Thread, q.mail.ID), Hops: q.hops()}
	return d.start(ctx, q, e)
}

// pingpong sends the first ball. The message that asked for the game is the ball's
// thread. This demo's balls have odd hops, so that the brake ends the game here and the
// asker gets a report.
func (d *demo) pingpong(ctx context.Context, q request, arg string) (outcome, error) {
	to, text, err := target(arg)
	if err != nil || text != "" || !to.IsAgent() {
		return outcome{failed: true, text: "/pingpong ADDRESS: no such agent"}, nil
	}
	id := d.causedID(q, envelope.KindMessage)
	return d.start(ctx, q, envelope.Envelope{ID: id, To: to, Text: ball(1), Thread: id, Hops: q.hops() | 1})
}

// start stores the job, then sends its message. If the bus refuses that, the asker is
// told and the job forgotten.
func (d *demo) start(ctx context.Context, q request, e envelope.Envelope) (outcome, error) {
	if d.jobs.full() {
		return outcome{failed: true, text: fmt.Sprintf("waiting for %d answers already; not delegated", maxJobs)}, nil
	}
	o := job{To: e.To, Asker: q.mail.From, Message: q.mail.ID, Thread: q.mail.Thread, Hops: q.mail.Hops}
	if err := d.durable(ctx, func() error { return d.jobs.add(e.ID, o) }); err != nil {
		return outcome{}, err
	}
	d.step("recorded")
	refusal, err := d.send(ctx, e)
	if err != nil {
		return outcome{}, err
	}
	d.step("sent")
	if refusal == nil {
		return outcome{silent: true}, nil
	}
	text := fmt.Sprintf("not sent to %s: %v", e.To, refusal)
	return d.giveUp(ctx, q, e.ID, text)
}

// giveUp answers the asker, then forgets the job: in this order, since with the job
// gone a crash would leave nobody who knows of it.
func (d *demo) giveUp(ctx context.Context, q request, sent, text string) (outcome, error) {
	out := outcome{text: text, failed: true}
	if q.mail.ID != "" {
		if err := d.answer(ctx, q.mail, text, true); err != nil {
			return outcome{}, err
		}
		d.step("answered")
		out.silent = true
	}
	return out, d.durable(ctx, func() error { return d.jobs.drop(sent) })
}

// passOn checks whether a reply or an error answers something delegated, and if so
// reports it to the address that asked for it.
func (d *demo) passOn(ctx context.Context, e envelope.Envelope) error {
	o, ok := d.jobs.open[e.InReplyTo]
	if !ok || o.To != e.From {
		return nil
	}
	text := fmt.Sprintf("%s answers: %s", e.From, e.Text)
	if e.Kind == envelope.KindError {
		text = fmt.Sprintf("%s answers with an error: %s", e.From, e.Text)
	}
	return d.finish(ctx, e.InReplyTo, text, e.Kind == envelope.KindError, e.Hops)
}

// maxReport is how many characters of an answer are passed on: with the words before
// it, one of the maximum size would no longer fit into an envelope.
const maxReport = 50_000

// finish reports on a job to its asker, then forgets it. hops are those of the envelope
// that led to the report.
func (d *demo) finish(ctx context.Context, sent, text string, failed bool, hops int) error {
	o := d.jobs.open[sent]
	if o.Asker == "" {
		d.pane.note(text)
	} else if err := d.answer(ctx, envelope.Envelope{ID: o.Message, From: o.Asker, Thread: o.Thread, Hops: hops}, shorten(text, maxReport), failed); err != nil {
		return err
	}
	d.step("reported")
	if err := d.durable(ctx, func() error { return d.jobs.drop(sent) }); err != nil {
		return err
	}
	d.step("forgotten")
	return nil
}

const ballPrefix = "/pong "

func ball(n int) string { return ballPrefix + strconv.Itoa(n) }

// parseBall parses a ball from another agent.
func parseBall(e envelope.Envelope) (n int, ok bool) {
	digits, ok := strings.CutPrefix(e.Text, ballPrefix)
	if !ok || e.Kind != envelope.KindMessage || !e.From.IsAgent() {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n > 0
}

// hitBack returns the ball until the bus refuses it. The report on that answers the
// message that started the game, so it has that one's hops.
func (d *demo) hitBack(ctx context.Context, e envelope.Envelope, n int) error {
	id := envelope.AnswerID(d.Agent, e.ID, envelope.KindMessage)
	refusal, err := d.send(ctx, envelope.Envelope{ID: id, To: e.From, Text: ball(n + 1), InReplyTo: e.ID, Thread: e.Thread, Hops: e.Hops + 1})
	if err != nil || refusal == nil {
		return err
	}
	text := fmt.Sprintf("ping-pong with %s ended after %d messages: %v", e.From, n, refusal)
	o, ok := d.jobs.open[e.Thread]
	if !ok || o.To != e.From {
		d.pane.note(text)
		return nil
	}
	return d.finish(ctx, e.Thread, text, false, o.Hops)
}

// target splits an address from the text after it.
func target(arg string) (agent.ID, string, error) {
	word, text := split(arg)
	id, err := agent.ParseArgAddress(word)
	return id, text, err
}

// causedID derives an id from a request: always the same for the same message. A typed
// line is typed once, so any new id is fine.
func (d *demo) causedID(q request, kind envelope.Kind) string {
	if q.mail.ID == "" {
		return "typed-" + agent.NewStart()
	}
	return envelope.AnswerID(d.Agent, q.mail.ID, kind)
}

// hops returns the hops of an envelope that the request leads to.
func (q request) hops() int {
	if q.mail.ID == "" {
		return 0
	}
	return q.mail.Hops + 1
}
