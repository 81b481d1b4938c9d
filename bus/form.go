package bus

import (
	"strings"

	"netsky/agent"
)

// A form is what is asked of an envelope where it lies. The zero form asks
// nothing but what every envelope must be.
type form struct {
	bus   *Bus
	box   agent.ID // whose mailbox it is
	place Place    // Inbox, Outbox, or any other place, which asks no more
}

// maxFaults is how many faults of one file are named.
const maxFaults = 12

func (f form) parse(data []byte) (Envelope, error) {
	e, err := decode(data, func(err error) error { return err })
	if err != nil {
		return Envelope{}, err
	}
	if list := f.fit(&e); len(list) > 0 {
		return Envelope{}, list[0]
	}
	if err := e.Validate(); err != nil {
		return Envelope{}, err
	}
	return e, nil
}

// faults names everything that is wrong with a file, at least one thing if
// parse refuses it: whoever mends it wants to do so once.
func (f form) faults(data []byte) (list []error) {
	named := make(map[string]bool)
	add := func(err error) error {
		field, _, _ := strings.Cut(err.Error(), ": ")
		if !named[field] && len(list) < maxFaults {
			named[field] = true
			list = append(list, err)
		}
		return nil
	}
	e, err := decode(data, add)
	if err != nil { // what follows can't be read
		add(err)
		return list
	}
	for _, err := range f.fit(&e) {
		add(err)
	}
	for _, err := range e.faults() {
		add(err)
	}
	return list
}

// fit fills in what the place tells and names what contradicts it.
func (f form) fit(e *Envelope) (list []error) {
	switch f.place {
	case Inbox:
		if e.To != "" && e.To != f.box {
			list = append(list, invalidf("to: %s, but this is the mailbox of %s", e.To, f.box))
		}
	case Outbox: // the sender and the time may be missing: the router knows them
		if e.From != "" && e.From != f.box {
			list = append(list, invalidf("from: %s, but this is the outbox of %s", e.From, f.box))
		}
		e.From, e.Via = f.box, ""
		if e.Time.IsZero() {
			e.Time = f.bus.now()
		}
		if e.To == "" {
			list = append(list, invalidf("to: missing"))
		}
	}
	return list
}

// joined is one error of all faults.
func joined(list []error) error {
	words := make([]string, len(list))
	for i, err := range list {
		words[i] = err.Error()
	}
	return invalidError(strings.Join(words, "; "))
}
