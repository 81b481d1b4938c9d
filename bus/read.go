package bus

import (
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
)

// An unfinishedError reports a file that is the beginning of an envelope.
type unfinishedError struct{ error }

func (e unfinishedError) Unwrap() error { return e.error }

// readEnvelope reads and parses one file and sets the envelope's ID. The error lists
// everything that is wrong with it.
func (b *Bus) readEnvelope(dir int, name string, f form) (envelope.Envelope, mailbox.Mark, error) {
	data, m, err := mailbox.ReadFile(dir, name, b.maxBytes)
	if err != nil {
		return envelope.Envelope{}, m, err
	}
	e, err := f.parse(data)
	if err != nil {
		err = envelope.Join(f.faults(data))
		if envelope.Unfinished(data) {
			err = unfinishedError{err}
		}
		return envelope.Envelope{}, m, err
	}
	if e.ID == "" {
		e.ID = envelope.FileID(name, m.MTime, m.Ino)
	}
	return e, m, nil
}

// orderTime returns the file's position in its mailbox's order, in nanoseconds.
func orderTime(dir int, name string) (ns int64, err error) {
	if ns, _, ok := envelope.NameParts(name); ok {
		return ns, nil
	}
	st, err := mailbox.Lstat(dir, name)
	if err != nil {
		return 0, err
	}
	return st.Mtim.Nano(), nil
}

func timeOf(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// A form is what an envelope must satisfy where it was found. The zero form requires only
// what every envelope must satisfy.
type form struct {
	bus   *Bus
	box   agent.ID // whose mailbox it is
	place Place    // Inbox, Outbox, or any other place, which requires nothing more
}

func (f form) parse(data []byte) (envelope.Envelope, error) { return envelope.Fit(f.fit).Parse(data) }

func (f form) faults(data []byte) []error { return envelope.Fit(f.fit).Faults(data) }

// fit fills in what the place implies and lists what contradicts it.
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
