package envelope

import (
	"strings"
)

// A Fit completes an envelope with what its file's place implies, and lists what
// contradicts that. A nil Fit does nothing.
type Fit func(*Envelope) []error

// maxFaults is how many faults of one file are listed.
const maxFaults = 12

// Parse reads one envelope, completes and validates it. The error is the first
// fault and matches ErrInvalid.
func (fit Fit) Parse(data []byte) (Envelope, error) {
	e, err := Decode(data, func(err error) error { return err })
	if err != nil {
		return Envelope{}, err
	}
	if fit != nil {
		if list := fit(&e); len(list) > 0 {
			return Envelope{}, list[0]
		}
	}
	if err := e.Validate(); err != nil {
		return Envelope{}, err
	}
	return e, nil
}

// Faults lists everything that is wrong with a file, at least one fault if Parse refuses
// it and at most twelve, so that a person can correct it at once.
func (fit Fit) Faults(data []byte) (list []error) {
	named := make(map[string]bool)
	add := func(err error) error {
		field, _, _ := strings.Cut(err.Error(), ": ")
		if !named[field] && len(list) < maxFaults {
			named[field] = true
			list = append(list, err)
		}
		return nil
	}
	e, err := Decode(data, add)
	if err != nil { // the rest can't be read
		add(err)
		return list
	}
	if fit != nil {
		for _, err := range fit(&e) {
			add(err)
		}
	}
	for _, err := range e.faults() {
		add(err)
	}
	return list
}

// Join returns one error for all faults.
func Join(list []error) error {
	words := make([]string, len(list))
	for i, err := range list {
		words[i] = err.Error()
	}
	return invalidError(strings.Join(words, "; "))
}
