package phone

import (
	"context"
	"fmt"

	"netsky/attention"
	"netsky/bus/envelope"
	"netsky/phone/record"
)

// continues makes an answer of what the owner wrote in reply to an agent's message, or to the
// text that shows its question.
func (b *orders) continues(ctx context.Context, h record.Heard, e *envelope.Envelope) {
	s, ok, err := b.rec.SaidAs(ctx, h.Line, h.About)
	if err != nil || !ok {
		return
	}
	switch s.Kind {
	case kindMail:
		b.inReply(ctx, e, s.About)
	case kindNeed:
		list, _ := b.o.Desk.Needs(ctx)
		if n, ok := attention.Find(list, s.About); ok && n.Kind == attention.Question && n.Host == "" {
			b.inReply(ctx, e, n.Message)
			e.Kind = envelope.KindReply
		}
	}
}

// inReply makes a reply to that message of e, which goes to its sender then.
func (b *orders) inReply(ctx context.Context, e *envelope.Envelope, id string) {
	m, err := b.rec.DB.Message(ctx, id)
	if err != nil || !m.From.IsAgent() {
		return
	}
	e.To, e.InReplyTo, e.Thread = m.From, m.ID, m.Thread
	if m.RequiresAck || envelope.Kind(m.Kind) == envelope.KindBrief || m.Kind == "question" {
		e.Kind = envelope.KindReply // it asked; otherwise it is a message, which is answered in turn
	}
}

// answersQuestion makes an answer of a message to an agent that waits for one, if it has asked
// one thing only and this chat was shown it, and returns what to say about that.
func (b *orders) answersQuestion(ctx context.Context, h record.Heard, e *envelope.Envelope) string {
	list, _ := b.o.Desk.Needs(ctx)
	asked := attention.Need{}
	for _, n := range list {
		switch {
		case n.Kind != attention.Question || n.Host != "" || n.Agents[0] != e.To:
		case asked.Code != "":
			return fmt.Sprintf("%s has asked several things: reply to the very text that shows one to answer it.", e.To)
		default:
			asked = n
		}
	}
	if asked.Code == "" {
		return ""
	}
	if shown, err := b.rec.Shown(ctx, h.Line, h.Chat.Key, asked.Code, asked.Message); err != nil || !shown {
		return fmt.Sprintf("%s waits for an answer to something that was not shown here; this was no answer to it. needs %s shows it.", e.To, asked.Code)
	}
	b.inReply(ctx, e, asked.Message)
	if e.InReplyTo == "" {
		return ""
	}
	e.Kind = envelope.KindReply
	return fmt.Sprintf("That answers what %s asked: %s", e.To, envelope.Line(asked.Text, 100))
}
