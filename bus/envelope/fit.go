package envelope

import (
	"strings"
)

// A Fit completes an envelope with what is known from the place where its file
// was found, and names what contradicts that. A nil Fit does nothing.
type Fit func(*Envelope) []error

// maxFaults is how many faults of one file are named.
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

// Faults names everything that is wrong with a file, at least one thing if
// Parse refuses it and at most twelve, so that a person can correct it at once.
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

// Join is one error of all faults.
func Join(list []error) error {
	words := make([]string, len(list))
	for i, err := range list {
		words[i] = err.Error()
	}
	return invalidError(strings.Join(words, "; "))
}
