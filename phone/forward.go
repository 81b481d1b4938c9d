package phone

import (
	"context"
	"fmt"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/phone/chat"
	"netsky/phone/record"
	"netsky/store"
)

const (
	forwardEvery = 500 * time.Millisecond
	forwardMost  = 10 * time.Second // after failures
	mostForward  = 100
	// Mail that answers nothing from the phone is held back: the owner may be at the computer,
	// and read it there.
	holdBack = 20 * time.Second
)

// A forwarder records what of the owner's mail is to be texted.
type forwarder struct{ loop }

// forward records what of the owner's mail is to be texted.
func (b *forwarder) forward(ctx context.Context) error {
	wait, told := time.Duration(forwardEvery), ""
	for {
		// What fails here stops nothing else: mail waits.
		if err := b.forwardNext(ctx); err == nil {
			wait, told = forwardEvery, ""
		} else {
			wait = min(2*wait, forwardMost)
			if err.Error() != told && ctx.Err() == nil {
				told = err.Error()
				b.o.Log.Warn("forward", "error", err)
			}
		}
		if err := proc.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

func (b *forwarder) forwardNext(ctx context.Context) error {
	list, upTo, err := b.rec.MailAfter(ctx, b.line.Forwarded, mostForward)
	if err == nil && upTo < b.line.Forwarded {
		var now loop
		if now, err = b.open(ctx); err == nil {
			b.line.Forwarded = min(now.line.Forwarded, upTo)
		}
		return err // what is behind it is found by the next look
	}
	if err != nil || upTo <= b.line.Forwarded {
		return err
	}
	say, waits, err := b.texts(ctx, list)
	if err != nil || waits {
		return err
	}
	if err := b.rec.Forward(ctx, b.line.Name, upTo, say); err != nil {
		return err
	}
	b.line.Forwarded = upTo
	b.status.forwards(list)
	if len(say) > 0 {
		wake(b.unsent)
	}
	return nil
}

// texts returns what is to be texted of mail. waits says that there is no chat yet to send it
// to.
func (b *forwarder) texts(ctx context.Context, list []record.Mail) (say []record.Said, waits bool, err error) {
	for _, m := range list {
		if m.Time <= b.line.Fence || !forwarded(m) {
			continue // from before the records were made anew, or not for the phone
		}
		to, hold := chat.Chat{}, store.Time(0)
		asked, ok, err := b.rec.HeardAs(ctx, m.InReplyTo)
		if err != nil {
			return nil, false, err
		}
		ok = ok && m.InReplyTo != ""
		if ok && asked.Line == b.line.Name {
			to = chatOf(asked.Chat)
		} else {
			if m.From.IsClone() && !ok && !netskys(m) {
				continue
			}
			if to, ok, err = b.room(ctx); err != nil || !ok {
				return nil, true, err
			}
			if !envelope.ForPhone(m.Metadata) {
				hold = store.At(b.o.Now().Add(holdBack))
			}
		}
		name := string(m.From)
		if envelope.Kind(m.Kind) == envelope.KindError {
			name += ", error"
		}
		say = append(say, b.compose(letter{
			id: "m-" + short(string(m.From)+"\x00"+m.ID), chat: to, kind: kindMail, about: m.ID, name: name, text: m.Text + howToAnswer(m),
			rest: "the rest: netsky show " + m.ID, files: b.attached(m), hold: hold,
		})...)
	}
	return say, false, nil
}

// forwarded reports whether a message to the owner is one for the phone: what needs an answer
// of the owner's is texted by remind, as it can be answered there.
func forwarded(m record.Mail) bool {
	switch envelope.Kind(m.Kind) {
	case envelope.KindAck, envelope.KindShutdown, envelope.KindShutdownAck, envelope.KindCancel, envelope.KindApproval:
		return false
	case envelope.KindNotice: // what netsky itself reports is on the list of what needs the owner, if it does not say otherwise
		return m.Via != "code" || envelope.ForPhone(m.Metadata)
	}
	return m.From.IsAgent()
}

// netskys reports whether netsky itself reports something about the agent that it is from, here
// or on a host of the team. The bus lets no agent say so.
func netskys(m record.Mail) bool {
	return envelope.Kind(m.Kind) == envelope.KindNotice && (m.Via == "code" || m.Via == bus.ViaLinkCode)
}

// howToAnswer returns what to add to a message whose sender waits for an answer.
func howToAnswer(m record.Mail) string {
	if !m.RequiresAck && envelope.Kind(m.Kind) != envelope.KindBrief && m.Kind != "question" {
		return ""
	}
	return "\n" + replyHint(m.From)
}

// replyHint says how a text answers an agent's question.
func replyHint(id agent.ID) string {
	return fmt.Sprintf("To answer, reply to this very text, or write: %s: …", id)
}

// attached returns the paths of the files of a message to the owner that are there.
func (b *forwarder) attached(m record.Mail) (files []string) {
	for _, name := range m.Attachments {
		if rel, ok := strings.CutPrefix(name, "attach/"); ok && plainName(rel) {
			files = append(files, b.o.Home.Path(home.Mailbox(agent.Owner), "attach", rel))
		}
	}
	return files
}

func plainName(s string) bool {
	return s != "" && s[0] != '.' && !strings.ContainsAny(s, "/\\\x00")
}
