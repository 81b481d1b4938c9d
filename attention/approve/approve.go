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
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
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
// caller settles it by [home.Approvals.Settle].
func (d Desk) Ask(ctx context.Context, q agent.Approval) (agent.Approval, error) {
	q.AskedMS = time.Now().UnixMilli()
	q, err := home.Approvals(d.Home).Ask(q)
	if err != nil {
		return q, err
	}
	text := askText(q)
	// If the message can't be sent, status and the pane still show the request.
	r, err := d.Bus.Send(ctx, envelope.Envelope{
		ID: q.MailID(), From: q.Agent, To: agent.Owner, Kind: envelope.KindApproval,
		Text: envelope.SafeText(text), Via: "code", Time: time.Now(),
	})
	if err == nil {
		q.Mail = r.File
		err = home.Approvals(d.Home).Mailed(q)
	}
	if err != nil {
		d.Warn(fmt.Errorf("%s: could not send the owner mail about its question: %w", q.Agent, err))
	}
	return q, nil
}

// inMail is how much of a request the message to the owner has, in bytes.
const inMail = 16 << 10

// askText is the message to the owner about a request. Its lines are quoted, so that none
// can be taken for one of netsky's.
func askText(q agent.Approval) string {
	whole, cut := q.Whole(), false
	if len(whole) > inMail {
		whole, cut = envelope.Cut(whole, inMail), true
	}
	text := fmt.Sprintf("%s asks for permission to use %s:", q.Agent, q.Tool)
	if line, more := q.Brief(inMail); !more {
		text += " " + line
	} else {
		text += "\n> " + strings.ReplaceAll(whole, "\n", "\n> ")
	}
	if q.Dir != "" {
		text += "\nIn " + q.Dir
	}
	if q.Reason != "" {
		reason, _ := agent.Flat(q.Reason, 1000)
		text += "\nIts reason: " + reason
	}
	switch {
	case q.Only != "":
		text += fmt.Sprintf("\nnetsky can't answer it: %s. netsky attach %s opens its pane.", q.Only, q.Agent)
	case cut || q.Missing > 0:
		text += fmt.Sprintf("\nThis is only its beginning. netsky needs %s shows all that netsky can show, and how to answer.", q.Code)
	default:
		text += fmt.Sprintf("\nnetsky approve %s allows it once; netsky approve %s --deny denies it.", q.Code, q.Code)
	}
	return text
}

// answerEvery is how often an open request looks for its answer.
const answerEvery = 200 * time.Millisecond

// Put asks and waits for the answer. ok is false if it can't be asked, or the context ended
// first: then only the pane has it. Else the caller gives the program the answer, and calls
// settled with how that took it: by [Verdict], or otherwise.
func (d Desk) Put(ctx context.Context, q agent.Approval) (answer agent.Answer, settled func(how string), ok bool) {
	q, err := d.Ask(ctx, q)
	if err != nil {
		return answer, nil, false
	}
	tick := time.NewTicker(answerEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			d.Settle(ctx, q, agent.Outcome{How: Elsewhere})
			return answer, nil, false
		case <-tick.C:
		}
		if answer, ok, _ = home.Approvals(d.Home).Answered(q.Code); ok {
			return answer, func(how string) { d.Settle(ctx, q, agent.Outcome{How: how, Answer: answer}) }, true
		}
	}
}

// Settle ends a request. An outcome with a proof is put on record once that is found, by
// [Desk.Answer] or by [Desk.Confirm].
func (d Desk) Settle(ctx context.Context, q agent.Approval, o agent.Outcome) {
	if o.Proof == nil {
		d.record(ctx, q, o)
	}
	if err := home.Approvals(d.Home).Settled(q, o); err != nil {
		d.Warn(fmt.Errorf("%s: cannot record how %s was settled: %w", q.Agent, q.Code, err))
	}
}

// record puts on record how a request was settled.
func (d Desk) record(ctx context.Context, q agent.Approval, o agent.Outcome) {
	if o.Answer.ID != "" && o.How == Verdict(o.Answer.Allow) {
		d.Answered(ctx, q, o.Answer)
	} else {
		d.Settled(ctx, q, o.How)
	}
}

const (
	provenWithin = 5 * time.Second // for a program to record that it took an answer
	asksNoMore   = time.Second     // for it to record that it does not wait for one any more
)

// proven replaces an outcome that has a proof by what that shows; ok is false if it does not
// show it yet.
func (d Desk) proven(ctx context.Context, code string, o agent.Outcome) (agent.Outcome, bool) {
	if o.Proof == nil {
		return o, true
	}
	age := time.Since(time.UnixMilli(o.MS))
	taken, known := o.Proof.Find(age > asksNoMore)
	if !known && age < provenWithin {
		return o, false
	}
	switch {
	case taken:
	case known:
		o.How = InPane
	default:
		o.How = Unconfirmed
	}
	o.Proof = nil
	q := o.Of
	d.record(ctx, q, o)
	if err := home.Approvals(d.Home).Settled(q, o); err != nil {
		d.Warn(fmt.Errorf("%s: cannot record how %s was settled: %w", q.Agent, code, err))
	}
	return o, true
}

// Confirm puts on record how requests of an agent's start were settled of which that was not
// known yet.
func (d Desk) Confirm(ctx context.Context, id agent.ID, start string) {
	for code, o := range home.Approvals(d.Home).Outcomes() {
		if o.Agent == id && o.Start == start && o.Proof != nil {
			d.proven(ctx, code, o)
		}
	}
}

const (
	takenWithin = 10 * time.Second // for a program to take an answer
	takenLook   = 50 * time.Millisecond
)

// Answer gives the owner's answer to the request with the code, once, and returns when the
// agent's program has taken it. If there is no such request, if it was settled otherwise, or
// if the pane was quicker, the error matches agent.ErrNoApproval and says how it was
// settled, as far as that is known. It matches agent.ErrAtPane if netsky can't give that
// answer, and agent.ErrUntaken if it is not known in time how the program took it.
func (d Desk) Answer(ctx context.Context, code string, answer agent.Answer) (agent.Approval, error) {
	answer.ID = rand.Text()
	q, err := home.Approvals(d.Home).Answer(code, answer)
	switch {
	case errors.Is(err, agent.ErrAtPane):
		return q, advice.With(fmt.Errorf("%s: nothing was answered: %w: %s", code, err, q.Closed()), "`netsky attach %s` opens its pane", q.Agent)
	case errors.Is(err, agent.ErrNoApproval):
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
	case err != nil:
		return q, err
	}
	return q, d.taken(ctx, q, answer)
}

// taken waits until the program has taken the answer.
func (d Desk) taken(ctx context.Context, q agent.Approval, answer agent.Answer) error {
	tick := time.NewTicker(takenLook)
	defer tick.Stop()
	for end := time.Now().Add(takenWithin); ; {
		alive := q.Asker.Alive()
		o, ok := home.Approvals(d.Home).Outcome(q.Code)
		if ok {
			alive = true // its program is asked now
			o, ok = d.proven(ctx, q.Code, o)
		}
		if ok && o.How == Unconfirmed {
			return fmt.Errorf("%s: %s: %w", q.Code, q.Agent, agent.ErrUntaken)
		}
		if ok {
			if o.Answer.ID == answer.ID && o.How == Verdict(answer.Allow) {
				return nil
			}
			return advice.With(fmt.Errorf("%s: %w: it is settled already (%s), and nothing has changed", q.Code, agent.ErrNoApproval, o.How),
				"`netsky needs` lists what still needs you")
		}
		if !alive {
			return fmt.Errorf("%s: %w: what asked for it has ended before it read the answer", q.Code, agent.ErrNoApproval)
		}
		if time.Now().After(end) {
			return advice.With(fmt.Errorf("%s: %s: %w", q.Code, q.Agent, agent.ErrUntaken), "`netsky log` shows how it was settled once it was")
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %s: %w", q.Code, q.Agent, agent.ErrUntaken)
		case <-tick.C:
		}
	}
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
	if given, ok, _ := home.Approvals(d.Home).Answered(code); ok {
		return By(given), given.ID
	}
	if o, ok := home.Approvals(d.Home).Outcome(code); ok && o.Answer.ID != "" && o.How == Verdict(o.Answer.Allow) {
		return By(o.Answer), o.Answer.ID
	} else if ok {
		return o.How, ""
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
		logs, err := db.Logs(ctx, store.LogFilter{Part: logPart, Own: true, Page: page})
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
		if _, host, far := strings.Cut(v.By, "@"); far { // owner@laptop
			return text + ", on " + host
		}
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
	Unconfirmed   = "answered, which the program has not confirmed"
)

// logPart is the part of netsky that the records name for how requests were settled.
const logPart = "approval"

// Answered records that a request was settled by an answer of the owner's.
func (d Desk) Answered(ctx context.Context, q agent.Approval, answer agent.Answer) {
	d.settled(ctx, q, By(answer), map[string]any{"code": q.Code, "answer": answer.ID})
}

// Granted records that a request was allowed without asking; see [Own].
func (d Desk) Granted(ctx context.Context, q agent.Approval) {
	j := store.NewJournal(d.Home)
	defer j.Close()
	_ = j.Record(context.WithoutCancel(ctx), store.AddLog{ // as in settled
		Part: logPart, Actor: q.Agent, About: cmp.Or(q.Message, q.Start), Text: logText("allowed by commit_and_check in netsky.toml", q),
	})
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
		Text: logText(how, q), Fields: fields,
	})
	if q.Mail == "" {
		return
	}
	shown, err := home.ShownMail(d.Home).Names()
	if err == nil && !shown[q.Mail] {
		err = home.ShownMail(d.Home).Mark(q.Mail)
	}
	if err == nil {
		err = d.Bus.Settle(context.WithoutCancel(ctx), bus.SettledMail{ID: q.MailID(), From: q.Agent, Read: true})
	}
	if err != nil {
		d.Warn(fmt.Errorf("cannot mark the message about %s as read: %w", q.Code, err))
	}
}

func logText(how string, q agent.Approval) string {
	line, _ := q.Brief(300)
	return how + ": " + q.Tool + ": " + line
}
