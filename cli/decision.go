package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/codex"
	"netsky/spawn"
	"netsky/store"
)

// askOwner puts a question before the owner: in `netsky approvals`, and as a
// message. Whoever asks settles it.
func (a *app) askOwner(ctx context.Context, h home.Dir, b *bus.Bus, q agent.Approval) (agent.Approval, error) {
	q.AskedMS = time.Now().UnixMilli()
	q, err := h.Ask(q)
	if err != nil {
		return q, err
	}
	text := fmt.Sprintf("%s asks whether it may use %s: %s\nnetsky approve %s lets it, once; netsky approve %s --deny says no.",
		q.Agent, q.Tool, q.Text, q.Code, q.Code)
	if q.Reason != "" {
		text += "\nIts reason: " + q.Reason
	}
	// That the message can't be sent leaves status and the pane to tell.
	r, err := b.Send(ctx, envelope.Envelope{
		ID: q.MailID(), From: q.Agent, To: agent.Owner, Kind: envelope.KindApproval,
		Text: envelope.SafeText(text), Via: "code", Time: time.Now(),
	})
	if err == nil {
		q.Mail = r.File
		err = h.Mailed(q)
	}
	if err != nil {
		a.warn("%s: the owner was not told by mail: %v", q.Agent, err)
	}
	return q, nil
}

func verdict(allow bool) string {
	if allow {
		return "allowed"
	}
	return "denied"
}

// answered says who decided what, and by which surface.
func answered(v agent.Answer) string {
	text := verdict(v.Allow) + " by the owner"
	if v.By != "" {
		text += ", with " + v.By
	}
	return text
}

// How a question ended that netsky was not asked to answer any more. Whether it
// was a yes is known only if what it was about has been done since.
const (
	inPane        = "answered in the pane"
	allowedInPane = "allowed in the pane"
	elsewhere     = inPane + ", or withdrawn"
)

// decided puts on record how a question was settled, and marks the owner's mail
// about it as read. Who asked and who answered both call it: the first counts.
// The log is about the message in whose turn it was asked; its key ties it to the
// mail as well.
func (a *app) decided(ctx context.Context, h home.Dir, q agent.Approval, how string) {
	ctx = context.WithoutCancel(ctx)
	j := store.NewJournal(h)
	defer j.Close()
	// What the database does not take waits in the spool, which others tell of.
	_ = j.Record(ctx, store.AddLog{
		Key: q.MailID(), Part: "approval", Actor: q.Agent, About: cmp.Or(q.Message, q.MailID()), Text: brief(how+": "+q.Tool+": "+q.Text, 300),
		Fields: map[string]any{"code": q.Code},
	})
	if q.Mail == "" {
		return
	}
	l, err := a.launcher()
	if err == nil {
		err = markName(l, q.Mail)
	}
	if err != nil {
		a.warn("the message about %s stays unread: %v", q.Code, err)
	}
}

// interrupted puts on record who ended an agent's turn.
func (a *app) interrupted(ctx context.Context, l *spawn.Launcher, by, id agent.ID, about string) {
	_ = l.Journal.Record(context.WithoutCancel(ctx), store.AddLog{
		Part: "interrupt", Actor: id, About: about, Text: "turn ended by " + string(by) + ", with netsky interrupt",
	})
}

// inHand is the id of the message in whose turn the agent is, "" if that is not
// known: a person may have typed at its pane.
func inHand(l *spawn.Launcher, st spawn.Status) string {
	switch st.Runtime {
	case "claude":
		return prompting(l.Home, st.Agent, st.Start)
	case "codex":
		s, _, err := codex.LoadState(l.Home, st.Agent)
		if err != nil || s.Keep == nil {
			return ""
		}
		return s.Message
	}
	list, err := l.Bus.List(st.Agent, bus.Claimed, 1)
	if err != nil || len(list) == 0 || list[0].Err != nil {
		return ""
	}
	return list[0].Envelope.ID
}

// prompting is the id of the first message in the turn that Claude Code is at.
func prompting(h home.Dir, id agent.ID, start string) (message string) {
	tail := h.Events(id)
	defer tail.Close()
	_ = tail.Read(func(e agent.Event) { // what can't be read is not known
		if e.Start != start {
			return
		}
		switch e.Event {
		case agent.EventPrompt:
			if message = ""; len(e.IDs) > 0 {
				message = e.IDs[0]
			}
		case agent.EventStop, agent.EventStopFailed:
			message = ""
		}
	})
	return message
}
