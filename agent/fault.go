package agent

import (
	"strings"
	"time"
)

// A Reason says in a word why a model does not answer.
type Reason string

const (
	Login       Reason = "login"         // nobody is logged in, or the login is not accepted
	UsageLimit  Reason = "usage_limit"   // the plan's quota is used up until a reset
	RateLimit   Reason = "rate_limit"    // too many requests
	Overloaded  Reason = "overloaded"    // the vendor has no capacity, or fails
	Billing     Reason = "billing"       // no credit
	Network     Reason = "network"       // the vendor can't be reached
	ContextFull Reason = "context_full"  // the conversation is too long; only this agent's
	Unsupported Reason = "not_supported" // the vendor refuses this kind of request for good
	Budget      Reason = "budget"        // what the owner allows is used up; no vendor says that
	Unasked     Reason = "unasked"       // the program began too many turns by itself; likewise
)

// OfAccount reports whether the reason concerns everyone who uses the same account.
func (r Reason) OfAccount() bool {
	return r != "" && r != ContextFull && r != Unsupported && r != Unasked
}

// Text describes the reason for people.
func (r Reason) Text() string {
	switch r {
	case Login:
		return "not logged in"
	case Overloaded:
		return "vendor overloaded"
	case Billing:
		return "no credit"
	case Network:
		return "vendor not reachable"
	case Budget:
		return "budget used up"
	case Unasked:
		return "turns that nobody asked for"
	}
	return strings.ReplaceAll(string(r), "_", " ")
}

// A Fault is the vendor's: it kept the model from answering. It is no answer to the
// message that the turn took.
type Fault struct {
	Reason Reason `json:"reason"`
	// Account names the provider and the login that is affected, without a secret, and the
	// Scope; "" if it is not known, or if only this conversation is.
	Account string `json:"account,omitempty"`
	Scope   string `json:"scope,omitempty"`    // the model that is affected: "opus"; "": all of the account
	UntilMS int64  `json:"until_ms,omitempty"` // when it passes, if the vendor says so
	Text    string `json:"text,omitempty"`     // the vendor's words, in one line
	// Continues reports that the program itself continues the turn then.
	Continues bool `json:"continues,omitempty"`
}

// Until returns when the fault passes, in local time; zero if that is not known.
func (f Fault) Until() time.Time {
	if f.UntilMS == 0 {
		return time.Time{}
	}
	return time.UnixMilli(f.UntilMS)
}

// String describes the fault in a line: "usage limit of opus until 14:30: You've hit …".
func (f Fault) String() string {
	s := f.Reason.Text()
	if f.Scope != "" {
		s += " of " + f.Scope
	}
	if until := f.Until(); !until.IsZero() {
		word := " until "
		if f.Reason == Login { // whose end nobody states
			word = ", tried again at "
		}
		s += word + Clock(until, time.Now())
	}
	return strings.TrimSuffix(s+": "+f.Text, ": ")
}

// Clock returns the time of day, with the date if it is over 20 hours from now, and with
// seconds if it is less than 5 minutes.
func Clock(t, now time.Time) string {
	switch d := t.Sub(now).Abs(); {
	case d > 20*time.Hour:
		return t.Local().Format("Mon 2 Jan 15:04")
	case d < 5*time.Minute:
		return t.Local().Format("15:04:05")
	}
	return t.Local().Format("15:04")
}
