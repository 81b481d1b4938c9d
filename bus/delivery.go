package bus

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"netsky/bus/envelope"
	"netsky/bus/mailbox"
)

// A Delivery is an envelope that has been taken and not yet confirmed. It is in claimed/,
// and if the holder dies, the next one is offered it again.
type Delivery struct {
	r          *Receiver
	name       string
	envelope   envelope.Envelope
	rendered   func() string
	witnessed  chan struct{}
	remembered bool // guarded by r.mu, like the fields below
	done       bool
}

// Envelope returns what was sent, with ID and To set.
func (d *Delivery) Envelope() envelope.Envelope { return d.envelope }

// Rendered returns the envelope as text for a model: the same bytes at every call.
func (d *Delivery) Rendered() string { return d.rendered() }

// Witnessed is closed when another process has recorded with Bus.Witness that the runtime
// has the envelope. Without ReceiveOptions.Witness that never happens.
func (d *Delivery) Witnessed() <-chan struct{} { return d.witnessed }

// Confirm records that the runtime has the envelope: its ID is remembered, durably, and
// the file moves to delivered/. After an error the delivery is still in hand and Confirm
// may be called again. After a crash before Confirm returns, the envelope is either
// offered again or filed.
func (d *Delivery) Confirm() error {
	return d.end(func(r *Receiver) error {
		if !d.remembered {
			if err := r.seen.Add(r.bus.now(), d.envelope); err != nil {
				return err
			}
			d.remembered = true
		}
		return r.filed(d.name, mailbox.Why{}, d.envelope)
	})
}

// ConfirmAll is Confirm of several deliveries: their IDs are remembered by one write for each
// receiver. It returns those that are still in hand after an error.
func ConfirmAll(list []*Delivery) (left []*Delivery, err error) {
	of := make(map[*Receiver][]*Delivery)
	for _, d := range list {
		of[d.r] = append(of[d.r], d)
	}
	for r, list := range of {
		some, rerr := r.confirm(list)
		left, err = append(left, some...), errors.Join(err, rerr)
	}
	return left, err
}

func (r *Receiver) confirm(list []*Delivery) (left []*Delivery, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return list, ErrClosed
	}
	var fresh []envelope.Envelope
	for _, d := range list {
		if !d.done && !d.remembered {
			fresh = append(fresh, d.envelope)
		}
	}
	if len(fresh) > 0 {
		if err := r.seen.Add(r.bus.now(), fresh...); err != nil {
			return list, err
		}
	}
	for _, d := range list {
		d.remembered = true
		if d.done {
			continue
		}
		if ferr := r.filed(d.name, mailbox.Why{}, d.envelope); ferr != nil {
			left, err = append(left, d), ferr
			continue
		}
		d.finish()
	}
	return left, err
}

// Expire files the envelope unread, as expired, and notifies its sender.
func (d *Delivery) Expire() error {
	return d.end(func(r *Receiver) error { return r.expire(d.name, d.envelope) })
}

// Poison moves the envelope to poison/ with the reason and notifies its sender. The ID is
// not remembered: moved out of poison/, the envelope is offered again.
func (d *Delivery) Poison(reason string) error {
	return d.end(func(r *Receiver) error { return r.refuse(d.name, d.envelope, reason) })
}

// end finishes the delivery, once. After an error it is still in hand.
func (d *Delivery) end(how func(*Receiver) error) error {
	r := d.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.done {
		return nil
	}
	if r.closed {
		return ErrClosed
	}
	if err := how(r); err != nil {
		return err
	}
	d.finish()
	return nil
}

// leave puts the envelope back into the inbox.
func (d *Delivery) leave() error {
	r := d.r
	r.mu.Lock()
	defer r.mu.Unlock()
	from, to, err := r.both(&r.claimed, &r.inbox)
	if err != nil {
		return err
	}
	if _, err := move(from, d.name, to); err != nil && !mailbox.Gone(err) {
		return err
	}
	d.finish()
	return nil
}

// finish removes the delivery from the deliveries in hand. The caller holds mu.
func (d *Delivery) finish() {
	d.done = true
	delete(d.r.held, d.envelope.ID)
	d.r.lastClaim = time.Time{}
	d.r.wake() // another with the same ID may have waited
	d.r.prod() // a shutdown may have waited for this
}

// A hand holds what has been handed to the runtime and not been confirmed, and disposes of what can't be.
type hand struct {
	*box
	post    *sender
	maxText int                          // longest rendered text that the runtime accepts; 0: any
	offered func(envelope.Envelope) bool // a dead holder may have given it out
	held    map[string]*Delivery
}

// dispose decides the fate of a letter in claimed/.
func (h *hand) dispose(l *letter, now time.Time) (*Delivery, error) {
	e := *l.env
	switch {
	case h.seen.Has(e) && !l.expired:
		var w mailbox.Why
		if l.ours {
			w = deliveredBefore(e)
		}
		err := h.filed(l.name, w, e)
		if err == nil {
			h.report("filed "+l.name+": already delivered", nil)
		}
		return nil, err
	case e.Expired(now) && !h.offered(e):
		l.expired = true
		return nil, h.expire(l.name, e)
	}
	d := &Delivery{name: l.name, envelope: e, witnessed: make(chan struct{})}
	d.rendered = sync.OnceValue(func() string { return envelope.Render(e, now) })
	if h.maxText > 0 {
		if n := len(d.rendered()); n > h.maxText {
			return nil, h.refuse(l.name, e, fmt.Sprintf("too long for %s: %d bytes exceed the limit of %d", h.id, n, h.maxText))
		}
	}
	h.held[e.ID] = d
	return d, nil
}

func deliveredBefore(e envelope.Envelope) mailbox.Why {
	return mailbox.Why{Text: "filed unread: an envelope from " + string(e.From) + " with this ID or idempotency key was already delivered", Reason: mailbox.Duplicate}
}

// expire files an envelope unread and notifies its sender.
func (h *hand) expire(name string, e envelope.Envelope) error {
	what := "it expired at " + e.Expires.Local().Format(time.DateTime)
	if err := h.tellSender(e, "not delivered to "+string(h.id)+": "+what); err != nil {
		return err
	}
	if err := h.file(name, mailbox.Why{Text: "filed unread: " + what, Reason: mailbox.Expired}, e); err != nil {
		return err
	}
	h.report("filed "+name+": expired", nil)
	return nil
}

// refuse poisons an envelope from claimed/ and notifies its sender first: after a crash
// the second notice has the same ID and so no effect.
func (h *hand) refuse(name string, e envelope.Envelope, reason string) error {
	if err := h.tellSender(e, "not delivered to "+string(h.id)+": "+reason); err != nil {
		return err
	}
	from, err := h.use(&h.claimed)
	if err != nil {
		return err
	}
	st, err := mailbox.Lstat(from, name)
	if err != nil && !mailbox.Gone(err) {
		return err
	}
	return h.poisonFrom(from, name, mailbox.MarkOf(st), errors.New(reason))
}

// beginning is how much of an undelivered answer its recipient is shown, in bytes.
const beginning = 2000

// tellSender answers with an error, unless the envelope is one that netsky does not answer
// or its sender has no mailbox. If it is an answer, the recipient, who waits for it, gets
// the error instead.
func (h *hand) tellSender(e envelope.Envelope, text string) error {
	if !e.Kind.Answerable() && !e.Kind.Control() && e.InReplyTo != "" {
		if e.ID == envelope.AnswerID(e.From, e.InReplyTo, envelope.KindError) {
			return nil // it is such an error
		}
		begins := beginning
		if h.maxText > 0 {
			begins = min(begins, h.maxText/16) // rendered it may be six times as long
		}
		cause := envelope.Envelope{ID: e.InReplyTo, Thread: e.Thread, Hops: e.Hops - 1}
		return h.post.answer(cause, envelope.Envelope{
			From: e.From, To: h.id, Kind: envelope.KindError,
			Text: fmt.Sprintf("the %s of %s was %s. It begins: %s", e.Kind, e.From, text, envelope.Cut(e.Text, begins)),
		})
	}
	if !e.Kind.Answerable() || e.From == h.id {
		return nil
	}
	err := h.post.answer(e, envelope.Envelope{From: h.id, To: e.From, Kind: envelope.KindError, Text: text})
	if errors.Is(err, ErrNoMailbox) {
		return nil
	}
	return err
}

// fileAstray files what was confirmed while its mailbox was away, once that is back: the
// file seen came back with it and lacks it.
func (h *hand) fileAstray() {
	if len(h.astray) == 0 {
		return
	}
	fd, err := h.use(&h.claimed)
	if err != nil {
		return // reported where mail is claimed
	}
	for name, e := range h.astray {
		l := &letter{candidate: candidate{name: name}, claimed: true}
		if h.look(l, fd); l.sys != nil {
			continue // not there yet
		}
		delete(h.astray, name)
		if l.env == nil || l.env.ID != e.ID || l.env.From != e.From || h.held[e.ID] != nil {
			continue // another file
		}
		err := h.rememberAgain(e)
		if err == nil {
			err = h.fileFrom(fd, name, mailbox.Why{}, e)
		}
		if err != nil {
			h.strays(name, e)
			h.trouble(name, "cannot file "+name, err)
			continue
		}
		h.report("filed "+name+": its mailbox was away when it was confirmed", nil)
	}
}
