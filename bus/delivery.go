package bus

import (
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
	from, err := r.use(&r.claimed)
	if err != nil {
		return err
	}
	to, err := r.use(&r.inbox)
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
