package bus

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
)

// A Receipt identifies what was sent.
type Receipt struct {
	ID   string // the envelope's
	File string // its name in the recipient's inbox
}

// A sender publishes what its sender may send.
type sender struct {
	memory
	*filer
	cache mailbox.Cache
}

// Send publishes an envelope to the mailbox of e.To and returns when it survives a power
// loss; the receiver may have it before that. It sets ID and Time if they are missing.
//
// The error matches ErrInvalid, ErrNotAllowed, ErrNoMailbox or ErrBrake, or is the
// system's; then the message is not sent. The Receipt always has the ID: sending the same
// message again under it has one effect, which is the thing to do when in doubt. A crash
// of the sender leaves the whole message or none, and at most a hidden file that the
// receiver removes.
func (s *sender) Send(ctx context.Context, e envelope.Envelope) (receipt Receipt, err error) {
	if e.ID == "" {
		e.ID = newID()
	}
	receipt.ID = e.ID
	e.To = s.reached(e)
	if err := ctx.Err(); err != nil {
		return receipt, err
	}
	if e.To == "" {
		return receipt, envelope.Invalidf("to: missing")
	}
	if e.Time.IsZero() {
		e.Time = s.now()
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
	if host := e.To.Host(); host != "" && s.left(host) {
		return receipt, noLink(e.To)
	}
	inbox, err := s.inbox(e.To)
	if err != nil {
		return receipt, err
	}
	defer s.cache.Put(inbox)
	if e.From.IsAgent() && (!e.Kind.Control() || e.From.Host() != "") && !own(e) { // another host's netsky may be anything
		if e.InReplyTo != "" && e.Hops == 0 {
			e.Hops = s.hopsAfter(e.From, e.InReplyTo)
		}
		r, err := s.brake(ctx, &e, inbox)
		if err != nil {
			return receipt, err
		}
		defer r.Release()
		defer r.Count(s.now())
		if e.InReplyTo != "" {
			defer func() {
				if receipt.File != "" {
					r.Answer(e.InReplyTo)
				}
			}()
		}
	}
	receipt.File, err = s.put(inbox.FD, e)
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
	"alone-", "approval-", "blind-", "budget-", "config-", "crash-loop-", "dialog-", "gone-", "hang-", "limit-", "link-", "lost-", "no-restart-", "phone-", "self-",
	"task-", "unready-",
}

// notices returns how the id of an agent's message to the owner begins, if one of netsky's own notices about
// that agent may have it: the first of two with one id and one sender is the only one that counts, so the
// agent could keep the notice from the owner.
func notices(e envelope.Envelope) string {
	if !e.From.IsAgent() || e.From.Host() != "" || e.To != agent.Owner {
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
func (s *sender) put(inbox int, e envelope.Envelope) (file string, err error) {
	data, err := e.MarshalJSON()
	if err != nil {
		return "", err
	}
	if int64(len(data)) > s.maxBytes {
		return "", envelope.Invalidf("%d bytes as a file: at most %d", len(data), s.maxBytes)
	}
	lane := e.From
	if e.To.Host() != "" && IsReport(e) {
		lane = reportLane
	}
	file, err = s.publish(inbox, lane, data)
	if err != nil {
		return "", fmt.Errorf("send to %s: %w", e.To, err)
	}
	return file, nil
}

// answer sends netsky's own answer to an envelope of a mailbox. Its ID depends only on its
// sender, its kind and that envelope, so sending it again has no effect. Brakes do not
// apply: there is at most one for each message.
func (s *sender) answer(cause, e envelope.Envelope) error {
	inbox, err := s.inbox(e.To)
	if err != nil {
		return err
	}
	defer s.cache.Put(inbox)
	e.ID, e.Time, e.Via = envelope.AnswerID(e.From, cause.ID, e.Kind), s.now(), "code"
	e.InReplyTo, e.Thread, e.Hops = cause.ID, cause.Thread, min(cause.Hops+1, envelope.MaxHops)
	_, err = s.put(inbox.FD, e)
	return err
}

// allowed reports whether the sender may write to the recipient.
func allowed(e envelope.Envelope) error {
	refuse := func(why string) error { return fmt.Errorf("%s: %w %s: %s", e.From, ErrNotAllowed, e.To, why) }
	if e.To.Host() != "" || e.From.Host() != "" {
		if err := across(e); err != nil {
			return err
		}
	}
	if !e.From.IsClone() {
		return nil
	}
	if e.Kind == envelope.KindShutdown {
		return refuse("clones cannot shut down agents")
	}
	switch {
	case e.To == e.From:
		return refuse("sender and recipient are the same")
	case e.To.Local() == agent.Root, e.To.IsClone():
		return nil
	case e.Kind == envelope.KindReply, e.Kind == envelope.KindError:
		if e.InReplyTo != "" {
			return nil
		}
		return refuse("from a clone, " + string(e.Kind) + " needs in_reply_to")
	case e.To.Local() == agent.Infinity:
		return refuse("clones may send agentinfinity only reply and error")
	case e.Kind == envelope.KindApproval, e.Kind == envelope.KindNotice:
		return nil
	}
	return refuse("clones may send the owner only reply, error, approval and notice")
}

// ErrUsed reports an ID that the sender has already used for another message, or for one
// that was filed unread: sending under it has no effect.
var ErrUsed = errors.New("was used already")

// SendOnce is Send for a sender that chose the ID: again reports that the recipient has
// already taken this very message, so that nothing was sent. The Receipt then has the
// first copy's file, if it is still there. The error matches ErrUsed if the recipient has
// a message with another text under that ID, or filed it unread.
func (s *sender) SendOnce(ctx context.Context, e envelope.Envelope) (r Receipt, again bool, err error) {
	if e.Time.IsZero() {
		e.Time = s.now()
	}
	e.To = s.reached(e)
	if e.ID != "" && e.Validate() == nil && allowed(e) == nil { // else Send says what is wrong
		r.ID = e.ID
		if r.File, again, err = s.taken(ctx, e); again || err != nil {
			return r, again, err
		}
	}
	r, err = s.Send(ctx, e)
	return r, false, err
}

// inbox is openPlace for senders, from the cache; the caller gives it back.
func (s *sender) inbox(id agent.ID) (*mailbox.Handle, error) {
	return s.cache.Get(placePath(id, Inbox), 0, func() (int, error) { return s.openInbox(id) })
}

// newID returns an ID for an envelope that is sent without one.
func newID() string {
	var r [10]byte
	rand.Read(r[:]) // never fails: crypto/rand ends the program instead
	return "m-" + hex.EncodeToString(r[:])
}
