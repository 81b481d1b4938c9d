package bus

import (
	"context"
	"fmt"

	"netsky/agent"
	"netsky/bus/envelope"
)

// A Receipt names what was sent.
type Receipt struct {
	ID   string // the envelope's
	File string // its name in the recipient's inbox
}

// Send publishes an envelope to the mailbox of e.To and returns when it
// survives a loss of power; the receiver may have it before that. It fills ID
// and Time where they are missing.
//
// The error matches ErrInvalid, ErrNotAllowed, ErrNoMailbox or ErrBrake, or is
// the system's; then the message is not sent. The Receipt has the ID in any
// case: the same message sent again under it has one effect, so that is what to
// do when in doubt. A crash of the sender leaves the message whole or not at
// all, and at most a hidden file that the receiver sweeps away.
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
	inbox, err := b.inbox(e.To)
	if err != nil {
		return receipt, err
	}
	defer b.cache.Put(inbox)
	if e.From.IsAgent() && !e.Kind.Control() {
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

// put publishes an envelope into an open inbox and asks nobody.
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

// answer sends what code has to say about an envelope of somebody's mailbox.
// Its ID depends on nothing but the three, so saying it again changes nothing.
// The bus's own answers know no brake: there is one for each message at most.
func (b *Bus) answer(from, to agent.ID, kind envelope.Kind, cause envelope.Envelope, text string) error {
	inbox, err := b.inbox(to)
	if err != nil {
		return err
	}
	defer b.cache.Put(inbox)
	_, err = b.put(inbox.FD, envelope.Envelope{
		ID: envelope.AnswerID(from, cause.ID, kind), From: from, To: to, Kind: kind, Text: text, Time: b.now(),
		InReplyTo: cause.ID, Thread: cause.Thread, Hops: min(cause.Hops+1, envelope.MaxHops), Via: "code",
	})
	return err
}

// allowed says who may write to whom.
func allowed(e envelope.Envelope) error {
	refuse := func(why string) error { return fmt.Errorf("%s: %w %s: %s", e.From, ErrNotAllowed, e.To, why) }
	if !e.From.IsClone() {
		return nil
	}
	if e.Kind == envelope.KindShutdown {
		return refuse("a clone shuts nobody down")
	}
	switch {
	case e.To == e.From:
		return refuse("it is the sender itself")
	case e.To == agent.Root, e.To.IsClone():
		return nil
	case e.Kind == envelope.KindReply, e.Kind == envelope.KindError:
		if e.InReplyTo != "" {
			return nil
		}
		return refuse("a clone's " + string(e.Kind) + " needs in_reply_to")
	case e.To == agent.Infinity:
		return refuse("clones send agentinfinity only reply and error")
	case e.Kind == envelope.KindApproval:
		return nil
	}
	return refuse("clones send the owner only reply, error and approval")
}
