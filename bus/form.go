package bus

import (
	"netsky/agent"
	"netsky/bus/envelope"
)

// A form is what is asked of an envelope where it lies. The zero form asks
// nothing but what every envelope must be.
type form struct {
	bus   *Bus
	box   agent.ID // whose mailbox it is
	place Place    // Inbox, Outbox, or any other place, which asks no more
}

func (f form) parse(data []byte) (envelope.Envelope, error) { return envelope.Fit(f.fit).Parse(data) }

func (f form) faults(data []byte) []error { return envelope.Fit(f.fit).Faults(data) }

// fit fills in what the place tells and names what contradicts it.
func (f form) fit(e *envelope.Envelope) (list []error) {
	switch f.place {
	case Inbox:
		if e.To != "" && e.To != f.box {
			list = append(list, envelope.Invalidf("to: %s, but this is the mailbox of %s", e.To, f.box))
		}
	case Outbox: // the sender and the time may be missing: the router knows them
		if e.From != "" && e.From != f.box {
			list = append(list, envelope.Invalidf("from: %s, but this is the outbox of %s", e.From, f.box))
		}
		e.From, e.Via = f.box, ""
		if e.Time.IsZero() {
			e.Time = f.bus.now()
		}
		if e.To == "" {
			list = append(list, envelope.Invalidf("to: missing"))
		}
	}
	return list
}
