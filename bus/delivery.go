package bus

import (
	"time"

	"netsky/bus/disk"
	"netsky/bus/envelope"
)

// A Delivery is an envelope that has been taken and not yet confirmed. It lies
// in claimed/, and if the holder dies, the next one gets it again.
type Delivery struct {
	r          *Receiver
	name       string
	envelope   envelope.Envelope
	rendered   func() string
	witnessed  chan struct{}
	remembered bool // guarded by r.mu, as is what follows
	done       bool
}

// Envelope is what was sent, with ID and To filled.
func (d *Delivery) Envelope() envelope.Envelope { return d.envelope }

// Rendered is the envelope for a model: the same bytes at every call.
func (d *Delivery) Rendered() string { return d.rendered() }

// Witnessed is closed when another process has noted by Bus.Witness that the
// runtime has the envelope. Without ReceiveOptions.Witness it never is.
func (d *Delivery) Witnessed() <-chan struct{} { return d.witnessed }

// Confirm says that the runtime has the envelope: its ID is remembered, durably,
// and the file goes to delivered/. After an error the delivery is still in hand
// and Confirm may be called again. After a crash before Confirm returns, the
// envelope is offered again or filed; never both, never neither.
func (d *Delivery) Confirm() error {
	r := d.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.done {
		return nil
	}
	if r.closed {
		return ErrClosed
	}
	if !d.remembered {
		if err := r.seen.Add(r.bus.now(), d.envelope); err != nil {
			return err
		}
		d.remembered = true
	}
	if err := r.filed(d.name, why{}, d.envelope); err != nil {
		return err
	}
	d.finish()
	return nil
}

// Poison puts the envelope aside with the reason and tells its sender. The ID
// is not remembered: taken out of poison/ again, the envelope is offered again.
func (d *Delivery) Poison(reason string) error {
	r := d.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.done {
		return nil
	}
	if r.closed {
		return ErrClosed
	}
	if err := r.refuse(d.name, d.envelope, reason); err != nil {
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
	if _, err := move(from, d.name, to); err != nil && !disk.Gone(err) {
		return err
	}
	d.finish()
	return nil
}

// finish takes the delivery out of hand. The caller holds mu.
func (d *Delivery) finish() {
	d.done = true
	delete(d.r.held, d.envelope.ID)
	d.r.lastClaim = time.Time{}
	d.r.wake() // one with the same ID may have waited
	d.r.prod() // for a shutdown that waited for this
}
