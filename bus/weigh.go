package bus

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"netsky/bus/envelope"
	"netsky/bus/mailbox"
)

// weigh decides the fate of a letter in claimed/.
func (r *Receiver) weigh(l *letter, now time.Time) (*Delivery, error) {
	e := *l.env
	switch {
	case r.seen.Has(e) && !l.expired:
		var w mailbox.Why
		if l.ours {
			w = deliveredBefore(e)
		}
		err := r.filed(l.name, w, e)
		if err == nil {
			r.o.Report("filed "+l.name+": already delivered", nil)
		}
		return nil, err
	case e.Expired(now) && !r.offered(e):
		l.expired = true
		return nil, r.expire(l.name, e)
	}
	d := &Delivery{r: r, name: l.name, envelope: e, witnessed: make(chan struct{})}
	d.rendered = sync.OnceValue(func() string { return envelope.Render(e, now) })
	if r.o.MaxText > 0 {
		if n := len(d.rendered()); n > r.o.MaxText {
			return nil, r.refuse(l.name, e, fmt.Sprintf("too long for %s: %d bytes exceed the limit of %d", r.id, n, r.o.MaxText))
		}
	}
	r.held[e.ID] = d
	return d, nil
}

func deliveredBefore(e envelope.Envelope) mailbox.Why {
	return mailbox.Why{Text: "filed unread: an envelope from " + string(e.From) + " with this ID or idempotency key was already delivered", Reason: mailbox.Duplicate}
}

func (r *Receiver) offered(e envelope.Envelope) bool { return r.o.Offered != nil && r.o.Offered(e) }

// lapse files what has expired while it waited, also if nobody calls Next, and returns when
// the next expires. It looks at no file that has not. The caller holds mu.
func (r *Receiver) lapse() time.Duration {
	wait, now := passEvery, r.bus.now()
	if r.given == nil { // if the clock is set back meanwhile, one is given out after all
		r.given = r.take(math.MaxInt, func(l *letter) bool {
			left := l.expires.Sub(now)
			if left > 0 {
				wait = min(wait, left)
			}
			return left <= 0 && !l.expires.IsZero() && r.readable(l) && (l.env == nil || !r.offered(*l.env))
		})
		r.taken(nil)
	}
	return wait
}

// expire files an envelope unread and notifies its sender.
func (r *Receiver) expire(name string, e envelope.Envelope) error {
	what := "it expired at " + e.Expires.Local().Format(time.DateTime)
	if err := r.tellSender(e, "not delivered to "+string(r.id)+": "+what); err != nil {
		return err
	}
	if err := r.seen.Add(r.bus.now(), e); err != nil {
		return err
	}
	if err := r.filed(name, mailbox.Why{Text: "filed unread: " + what, Reason: mailbox.Expired}, e); err != nil {
		return err
	}
	r.o.Report("filed "+name+": expired", nil)
	return nil
}

// refuse poisons an envelope from claimed/ and notifies its sender first: after a crash
// the second notice has the same ID and so no effect.
func (r *Receiver) refuse(name string, e envelope.Envelope, reason string) error {
	if err := r.tellSender(e, "not delivered to "+string(r.id)+": "+reason); err != nil {
		return err
	}
	from, err := r.use(&r.claimed)
	if err != nil {
		return err
	}
	st, err := mailbox.Lstat(from, name)
	if err != nil && !mailbox.Gone(err) {
		return err
	}
	return r.poisonFrom(from, name, mailbox.MarkOf(st), errors.New(reason))
}

// beginning is how much of an undelivered answer its recipient is shown, in bytes.
const beginning = 2000

// tellSender answers with an error, unless the envelope is one that netsky does not answer
// or its sender has no mailbox. If it is an answer, the recipient, who waits for it, gets
// the error instead.
func (r *Receiver) tellSender(e envelope.Envelope, text string) error {
	if !e.Kind.Answerable() && !e.Kind.Control() && e.InReplyTo != "" {
		if e.ID == envelope.AnswerID(e.From, e.InReplyTo, envelope.KindError) {
			return nil // it is such an error
		}
		begins := beginning
		if r.o.MaxText > 0 {
			begins = min(begins, r.o.MaxText/16) // rendered it may be six times as long
		}
		cause := envelope.Envelope{ID: e.InReplyTo, Thread: e.Thread, Hops: e.Hops - 1}
		return r.bus.answer(cause, envelope.Envelope{
			From: e.From, To: r.id, Kind: envelope.KindError,
			Text: fmt.Sprintf("the %s of %s was %s. It begins: %s", e.Kind, e.From, text, envelope.Cut(e.Text, begins)),
		})
	}
	if !e.Kind.Answerable() || e.From == r.id {
		return nil
	}
	err := r.bus.answer(e, envelope.Envelope{From: r.id, To: e.From, Kind: envelope.KindError, Text: text})
	if errors.Is(err, ErrNoMailbox) {
		return nil
	}
	return err
}
