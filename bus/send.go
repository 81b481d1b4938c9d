package bus

import (
	"context"
	"fmt"
	"strings"

	"netsky/agent"
	"netsky/bus/envelope"
)

// A Receipt identifies what was sent.
type Receipt struct {
	ID   string // the envelope's
	File string // its name in the recipient's inbox
}

// Send publishes an envelope to the mailbox of e.To and returns when it survives a power
// loss; the receiver may have it before that. It sets ID and Time if they are missing.
//
// The error matches ErrInvalid, ErrNotAllowed, ErrNoMailbox or ErrBrake, or is the
// system's; then the message is not sent. The Receipt always has the ID: sending the same
// message again under it has one effect, which is the thing to do when in doubt. A crash
// of the sender leaves the whole message or none, and at most a hidden file that the
// receiver removes.
func (b *Bus) Send(ctx context.Context, e envelope.Envelope) (receipt Receipt, err error) {
	if e.ID == "" {
		e.ID = newID()
	}
	receipt.ID = e.ID
	if err := ctx.Err(); err != nil {
		return receipt, err
	}
	if e.To == "" {
		return receipt, envelope.Invalidf("to: missing")
	}
	if e.Time.IsZero() {
		e.Time = b.now()
	}
	if err := e.Validate(); err != nil {
		return receipt, err
	}
	if err := allowed(e); err != nil {
		return receipt, err
	}
	if p := notices(e); p != "" && !own(e) {
		return receipt, envelope.Invalidf("id: %q: those of netsky's own notices begin with %s; choose another", e.ID, p)
	}
	inbox, err := b.inbox(e.To)
	if err != nil {
		return receipt, err
	}
	defer b.cache.Put(inbox)
	if e.From.IsAgent() && !e.Kind.Control() && !own(e) {
		if e.InReplyTo != "" && e.Hops == 0 {
			e.Hops = b.hopsAfter(e.From, e.InReplyTo)
		}
		r, err := b.brake(ctx, &e, inbox)
		if err != nil {
			return receipt, err
		}
		defer r.Release()
		defer r.Count(b.now())
		if e.InReplyTo != "" {
			defer func() {
				if receipt.File != "" {
					r.Answer(e.InReplyTo)
				}
			}()
		}
	}
	receipt.File, err = b.put(inbox.FD, e)
	return receipt, err
}

// own reports whether netsky itself wrote the message, in the name of the agent that it is
// about: whoever wrote it sends it once, so no brake applies, which is for what agents write.
func own(e envelope.Envelope) bool {
	return e.Via == "code" && (e.Kind == envelope.KindNotice || e.Kind == envelope.KindApproval)
}

// ownIDs begin the ids of what netsky writes to the owner in an agent's name. Whoever adds such a notice adds how
// its id begins.
var ownIDs = []string{
	"alone-", "approval-", "blind-", "budget-", "config-", "crash-loop-", "dialog-", "gone-", "hang-", "limit-", "lost-", "no-restart-", "phone-", "task-",
	"unready-",
}

// notices returns how the id of an agent's message to the owner begins, if one of netsky's own notices about
// that agent may have it: the first of two with one id and one sender is the only one that counts, so the
// agent could keep the notice from the owner.
func notices(e envelope.Envelope) string {
	if !e.From.IsAgent() || e.To != agent.Owner {
		return ""
	}
	for _, p := range ownIDs {
		if strings.HasPrefix(e.ID, p) {
			return p
		}
	}
	return ""
}

// put publishes an envelope into an open inbox without any checks of permission or rate.
func (b *Bus) put(inbox int, e envelope.Envelope) (file string, err error) {
	data, err := e.MarshalJSON()
	if err != nil {
		return "", err
	}
	if int64(len(data)) > b.maxBytes {
		return "", envelope.Invalidf("%d bytes as a file: at most %d", len(data), b.maxBytes)
	}
	file, err = b.publish(inbox, e.From, data)
	if err != nil {
		return "", fmt.Errorf("send to %s: %w", e.To, err)
	}
	return file, nil
}

// answer sends netsky's own answer to an envelope of a mailbox. Its ID depends only on its
// sender, its kind and that envelope, so sending it again has no effect. Brakes do not
// apply: there is at most one for each message.
func (b *Bus) answer(cause, e envelope.Envelope) error {
	inbox, err := b.inbox(e.To)
	if err != nil {
		return err
	}
	defer b.cache.Put(inbox)
	e.ID, e.Time, e.Via = envelope.AnswerID(e.From, cause.ID, e.Kind), b.now(), "code"
	e.InReplyTo, e.Thread, e.Hops = cause.ID, cause.Thread, min(cause.Hops+1, envelope.MaxHops)
	_, err = b.put(inbox.FD, e)
	return err
}

// allowed reports whether the sender may write to the recipient.
func allowed(e envelope.Envelope) error {
	refuse := func(why string) error { return fmt.Errorf("%s: %w %s: %s", e.From, ErrNotAllowed, e.To, why) }
	if !e.From.IsClone() {
		return nil
	}
	if e.Kind == envelope.KindShutdown {
		return refuse("clones cannot shut down agents")
	}
	switch {
	case e.To == e.From:
		return refuse("sender and recipient are the same")
	case e.To == agent.Root, e.To.IsClone():
		return nil
	case e.Kind == envelope.KindReply, e.Kind == envelope.KindError:
		if e.InReplyTo != "" {
			return nil
		}
		return refuse("from a clone, " + string(e.Kind) + " needs in_reply_to")
	case e.To == agent.Infinity:
		return refuse("clones may send agentinfinity only reply and error")
	case e.Kind == envelope.KindApproval, e.Kind == envelope.KindNotice:
		return nil
	}
	return refuse("clones may send the owner only reply, error, approval and notice")
}
