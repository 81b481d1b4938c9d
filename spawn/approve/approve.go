// Package approve brings an agent's question whether it may do something to the owner,
// and the answer back. A question is a file below state/approvals, a message to the
// owner, and mostly a dialog in the agent's pane: the first answer counts. What a
// crash leaves of it is cleared by whoever lists the questions next.
package approve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/advice"
	"netsky/store"
)

// A Desk is where questions are put before the owner of a home.
type Desk struct {
	Home home.Dir
	Bus  *bus.Bus
	Warn func(error) // of what went wrong beside it
}

// Ask puts a question before the owner: in `netsky approvals`, and as a message.
// Whoever asks settles it by [home.Dir.Settle].
func (d Desk) Ask(ctx context.Context, q agent.Approval) (agent.Approval, error) {
	q.AskedMS = time.Now().UnixMilli()
	q, err := d.Home.Ask(q)
	if err != nil {
		return q, err
	}
	text := fmt.Sprintf("%s asks whether it may use %s: %s\nnetsky approve %s lets it, once; netsky approve %s --deny says no.",
		q.Agent, q.Tool, q.Text, q.Code, q.Code)
	if q.Reason != "" {
		text += "\nIts reason: " + q.Reason
	}
	// That the message can't be sent leaves status and the pane to tell.
	r, err := d.Bus.Send(ctx, envelope.Envelope{
		ID: q.MailID(), From: q.Agent, To: agent.Owner, Kind: envelope.KindApproval,
		Text: envelope.SafeText(text), Via: "code", Time: time.Now(),
	})
	if err == nil {
		q.Mail = r.File
		err = d.Home.Mailed(q)
	}
	if err != nil {
		d.Warn(fmt.Errorf("%s: the owner was not told by mail: %w", q.Agent, err))
	}
	return q, nil
}

// answerEvery is how often an open question looks for its answer.
const answerEvery = 200 * time.Millisecond

// Put asks, waits for the answer and settles the question. ok is false if it can't be
// asked, or the context ended first: then the pane has it.
func (d Desk) Put(ctx context.Context, q agent.Approval) (answer agent.Answer, ok bool) {
	q, err := d.Ask(ctx, q)
	if err != nil {
		return answer, false
	}
	defer d.Home.Settle(q.Code)
	tick := time.NewTicker(answerEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			d.Settled(ctx, q, Elsewhere)
			return answer, false
		case <-tick.C:
		}
		if answer, ok, _ = d.Home.Answered(q.Code); ok {
			d.Settled(ctx, q, By(answer))
			return answer, true
		}
	}
}

// Answer gives the owner's answer to what waits under the code, once. The error
// matches agent.ErrNoApproval if nothing does.
func (d Desk) Answer(ctx context.Context, code string, answer agent.Answer) (agent.Approval, error) {
	q, err := d.Home.Answer(code, answer)
	if errors.Is(err, agent.ErrNoApproval) {
		return q, advice.With(fmt.Errorf("%s: %w: it may have been answered, or given up", code, err),
			"`netsky approvals` lists what waits for your yes; `netsky status` says who waits at its pane")
	}
	if err == nil {
		d.Settled(ctx, q, By(answer))
	}
	return q, err
}

// Verdict is an answer in one word.
func Verdict(allow bool) string {
	if allow {
		return "allowed"
	}
	return "denied"
}

// By says who decided what, and by which surface.
func By(v agent.Answer) string {
	text := Verdict(v.Allow) + " by the owner"
	if v.By != "" {
		text += ", with " + v.By
	}
	return text
}

// How a question ended that netsky was not asked to answer any more. Whether it
// was a yes is known only if what it was about has been done since.
const (
	InPane        = "answered in the pane"
	AllowedInPane = "allowed in the pane"
	Elsewhere     = InPane + ", or withdrawn"
)

// Settled records how a question was settled, and marks the owner's mail about it as
// read. Who asked and who answered both call it: the first counts. The log is about
// the message in whose turn it was asked; its key ties it to the mail as well.
func (d Desk) Settled(ctx context.Context, q agent.Approval, how string) {
	j := store.NewJournal(d.Home)
	defer j.Close()
	// What the database does not take waits in the spool, which others tell of.
	_ = j.Record(context.WithoutCancel(ctx), store.AddLog{
		Key: q.MailID(), Part: "approval", Actor: q.Agent, About: cmp.Or(q.Message, q.MailID()),
		Text: envelope.Line(how+": "+q.Tool+": "+q.Text, 300), Fields: map[string]any{"code": q.Code},
	})
	if q.Mail == "" {
		return
	}
	shown, err := d.Home.ShownMail()
	if err == nil && !shown[q.Mail] {
		err = d.Home.MarkShown(q.Mail)
	}
	if err != nil {
		d.Warn(fmt.Errorf("the message about %s stays unread: %w", q.Code, err))
	}
}
