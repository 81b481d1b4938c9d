// Package approve takes an agent's request for permission to the owner, and the answer
// back. A request is a file below state/approvals, a message to the owner, and usually
// a dialog in the agent's pane: the first answer counts. What a crash leaves is removed
// by the next process that lists the requests.
package approve

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/advice"
	"netsky/store"
)

// A Desk is where requests are put before the owner of a home.
type Desk struct {
	Home home.Dir
	Bus  *bus.Bus
	Warn func(error) // for failures besides the request itself
}

// Ask puts a request before the owner: in `netsky approvals`, and as a message. The
// caller settles it by [home.Dir.Settle].
func (d Desk) Ask(ctx context.Context, q agent.Approval) (agent.Approval, error) {
	q.AskedMS = time.Now().UnixMilli()
	q, err := d.Home.Ask(q)
	if err != nil {
		return q, err
	}
	text := fmt.Sprintf("%s asks for permission to use %s: %s\nnetsky approve %s allows it once; netsky approve %s --deny denies it.",
		q.Agent, q.Tool, q.Text, q.Code, q.Code)
	if q.Reason != "" {
		text += "\nIts reason: " + q.Reason
	}
	// If the message can't be sent, status and the pane still show the request.
	r, err := d.Bus.Send(ctx, envelope.Envelope{
		ID: q.MailID(), From: q.Agent, To: agent.Owner, Kind: envelope.KindApproval,
		Text: envelope.SafeText(text), Via: "code", Time: time.Now(),
	})
	if err == nil {
		q.Mail = r.File
		err = d.Home.Mailed(q)
	}
	if err != nil {
		d.Warn(fmt.Errorf("%s: could not send the owner mail about its question: %w", q.Agent, err))
	}
	return q, nil
}

// answerEvery is how often an open request looks for its answer.
const answerEvery = 200 * time.Millisecond

// Put asks, waits for the answer and settles the request. ok is false if it can't be
// asked, or the context ended first: then only the pane has it.
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
			d.Answered(ctx, q, answer)
			return answer, true
		}
	}
}

// Answer gives the owner's answer to the request with the code, once. If there is none, or
// it has been answered, the error matches agent.ErrNoApproval and says how it was settled,
// as far as that is known.
func (d Desk) Answer(ctx context.Context, code string, answer agent.Answer) (agent.Approval, error) {
	answer.ID = rand.Text()
	q, err := d.Home.Answer(code, answer)
	if errors.Is(err, agent.ErrNoApproval) {
		how, id := d.how(ctx, code)
		if id == answer.ID {
			return q, nil // the asker was so fast that the request was gone when we looked again
		}
		if how != "" {
			return q, advice.With(fmt.Errorf("%s: %w: it is settled already (%s), and nothing has changed", code, err, how),
				"`netsky needs` lists what still needs you")
		}
		return q, advice.With(fmt.Errorf("%s: %w: it may have been answered or withdrawn", code, err),
			"`netsky approvals` lists what waits for your approval; `netsky status` shows agents that wait at a dialog")
	}
	if err == nil {
		d.Answered(ctx, q, answer)
	}
	return q, err
}

// How returns how the request with the code was settled, "" if that is not known: by its
// answer, if its asker has not read that yet, else as it was recorded.
func (d Desk) How(ctx context.Context, code string) string {
	how, _ := d.how(ctx, code)
	return how
}

const (
	howWithin = 2 * time.Second
	howPages  = 10 // of a thousand entries each
)

// how is How, with the ID of the answer that settled it.
func (d Desk) how(ctx context.Context, code string) (how, answer string) {
	if given, ok, _ := d.Home.Answered(code); ok {
		return By(given), given.ID
	}
	ctx, cancel := context.WithTimeout(ctx, howWithin)
	defer cancel()
	db, err := store.OpenRead(ctx, d.Home)
	if err != nil {
		return "", ""
	}
	defer db.Close()
	page := store.Page{Limit: 1000}
	for range howPages {
		logs, err := db.Logs(ctx, store.LogFilter{Part: logPart, Page: page})
		if err != nil {
			return "", ""
		}
		for _, l := range logs.Items {
			if l.Fields["code"] == code {
				how, _, _ := strings.Cut(l.Text, ": ")
				answer, _ := l.Fields["answer"].(string)
				return how, answer
			}
		}
		if page.Cursor = logs.Cursor; page.Cursor == "" {
			break
		}
	}
	return "", ""
}

// Verdict returns an answer as one word.
func Verdict(allow bool) string {
	if allow {
		return "allowed"
	}
	return "denied"
}

// InDashboard is the [agent.Answer.By] of an answer given in the dashboard.
const InDashboard = "in the dashboard"

// By says who decided what, and where.
func By(v agent.Answer) string {
	text := Verdict(v.Allow) + " by the owner"
	switch v.By {
	case "":
	case InDashboard:
		text = "answered in the dashboard, " + text
	default:
		text += ", with " + v.By
	}
	return text
}

// How a request ended that netsky did not answer. Whether it was allowed is known only
// if it has been carried out since.
const (
	InPane        = "answered in the pane"
	AllowedInPane = "allowed in the pane"
	Elsewhere     = InPane + ", or withdrawn"
)

// logPart is the part of netsky that the records name for how requests were settled.
const logPart = "approval"

// Answered records that a request was settled by an answer of the owner's.
func (d Desk) Answered(ctx context.Context, q agent.Approval, answer agent.Answer) {
	d.settled(ctx, q, By(answer), map[string]any{"code": q.Code, "answer": answer.ID})
}

// Settled records how a request was settled otherwise.
func (d Desk) Settled(ctx context.Context, q agent.Approval, how string) {
	d.settled(ctx, q, how, map[string]any{"code": q.Code})
}

// settled records how a request was settled, and marks the owner's mail about it as
// read. Both the asker and the answerer call it; the first call counts. The log entry
// is about the message in whose turn it was asked; its key ties it to the mail as well.
func (d Desk) settled(ctx context.Context, q agent.Approval, how string, fields map[string]any) {
	j := store.NewJournal(d.Home)
	defer j.Close()
	// A record that the database does not accept waits in the spool, which is reported
	// elsewhere.
	_ = j.Record(context.WithoutCancel(ctx), store.AddLog{
		Key: q.MailID(), Part: logPart, Actor: q.Agent, About: cmp.Or(q.Message, q.MailID()),
		Text: envelope.Line(how+": "+q.Tool+": "+q.Text, 300), Fields: fields,
	})
	if q.Mail == "" {
		return
	}
	shown, err := d.Home.ShownMail()
	if err == nil && !shown[q.Mail] {
		err = d.Home.MarkShown(q.Mail)
	}
	if err != nil {
		d.Warn(fmt.Errorf("cannot mark the message about %s as read: %w", q.Code, err))
	}
}
