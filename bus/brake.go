package bus

import (
	"context"
	"fmt"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
)

// brake refuses an agent's envelope that exceeds a limit. If it does not, the caller
// counts the envelope once it is sent, so that counting is not part of the fsync for it,
// and releases the ring.
//
// The first answer to a message that the sender received is limited by that message's hops
// alone, not by rate or waiting mail. A refused answer is reported to whoever waits for
// it.
func (s *sender) brake(ctx context.Context, e *envelope.Envelope, inbox *mailbox.Handle) (*mailbox.Ring, error) {
	r, err := mailbox.OpenRing(ctx, s.home, &s.cache, &s.files, e.From, e.To)
	if err != nil {
		return nil, fmt.Errorf("count messages from %s to %s: %w", e.From, e.To, err)
	}
	if err := s.check(ctx, r, e, inbox); err != nil {
		r.Release()
		return nil, err
	}
	return r, nil
}

func (s *sender) check(ctx context.Context, r *mailbox.Ring, e *envelope.Envelope, inbox *mailbox.Handle) error {
	kind, fact, err := r.Excess(e.Hops, s.now(), func(limit int) (int, error) {
		inbox.Lock()
		defer inbox.Unlock()
		n, err := mailbox.Count(inbox.FD, limit)
		if err != nil {
			return 0, fmt.Errorf("count waiting messages for %s: %w", e.To, err)
		}
		return n, nil
	})
	if fact == "" || err != nil {
		return err
	}
	hops, first := 0, false
	if e.InReplyTo != "" {
		hops, first = s.firstAnswer(r, *e)
	}
	if first && kind != mailbox.Hops {
		if e.Hops = max(e.Hops, hops); e.Hops <= mailbox.MaxHops {
			r.Bounded = true
			return nil
		}
		kind, fact = mailbox.Hops, mailbox.HopsFact(e.Hops)
	}
	err = s.refuse(ctx, r, *e, kind, fact, s.now())
	// An agent that answers this error is refused again, and then nobody waits.
	if first && (e.To.Local() == agent.Owner || e.Hops <= mailbox.MaxHops+1) {
		cause := envelope.Envelope{ID: e.InReplyTo, Thread: e.Thread, Hops: e.Hops - 1}
		told := s.answer(cause, envelope.Envelope{From: e.From, To: e.To, Kind: envelope.KindError, Text: fmt.Sprintf("netsky refused the answer of %s: %s", e.From, fact)})
		if told != nil {
			return fmt.Errorf("%w; could not notify %s: %w", err, e.To, told)
		}
		r.Answer(e.InReplyTo)
	}
	return err
}

// firstAnswer reports whether the envelope is the first answer to a message that its sender
// got from its recipient, and how many hops it then has.
func (s *sender) firstAnswer(r *mailbox.Ring, e envelope.Envelope) (hops int, first bool) {
	if r.Answered(e.InReplyTo) {
		return 0, false
	}
	cause, ok := s.cause(e.From, e.To, e.InReplyTo)
	return cause.Hops + 1, ok
}

// refuse returns the refusal and notifies the owner unless that was done lately: of all agents of
// another host, which may be as many as it says, once.
func (s *sender) refuse(ctx context.Context, r *mailbox.Ring, e envelope.Envelope, kind mailbox.Brake, fact string, now time.Time) error {
	var err error = mailbox.BrakeError{Kind: kind, Text: fmt.Sprintf("%s to %s: %v: %s", e.From, e.To, ErrBrake, fact)}
	if host := e.From.Host(); host != "" {
		all, oerr := mailbox.OpenRing(ctx, s.home, &s.cache, &s.files, agent.Owner.At(host), agent.Owner)
		if oerr != nil {
			return fmt.Errorf("%w; could not notify the owner: %w", err, oerr)
		}
		defer all.Release()
		r = all
	}
	if r.ToldLately(kind, now) {
		return err
	}
	inbox, open := s.inbox(agent.Owner)
	if open != nil {
		return err // nobody to notify yet
	}
	defer s.cache.Put(inbox)
	_, told := s.put(inbox.FD, envelope.Envelope{
		ID: newID(), From: e.From, To: agent.Owner, Kind: envelope.KindError, Time: now, Via: "code", Thread: e.Thread,
		Text: fmt.Sprintf("netsky refused a message from %s to %s: %s. Further refusals of this kind are not reported for an hour.", e.From, e.To, fact),
	})
	if told != nil {
		return fmt.Errorf("%w; could not notify the owner: %w", err, told)
	}
	r.Tell(kind, now)
	return err
}
