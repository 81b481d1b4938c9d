package appserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
)

// Errors that callers distinguish.
var (
	// ErrGone is returned if Codex does not have the thread; it never will again.
	ErrGone = errors.New("codex has no such thread")
	// ErrHeld is returned if another process has the thread open.
	ErrHeld = errors.New("another process has the thread open")
	// ErrTimeout is returned if the turn ran too long and was interrupted.
	ErrTimeout = errors.New("the turn ran too long")
	// ErrInterrupted is returned if another client interrupted the turn.
	ErrInterrupted = errors.New("the turn was interrupted")
)

// A TurnError is a turn that failed.
type TurnError struct {
	// Fault is what kept the model from answering; its Reason is "" if it is something
	// else, such as an invalid request.
	Fault agent.Fault
	Text  string // in the words of Codex
}

func (e *TurnError) Error() string {
	if e.Fault.Reason == "" {
		return e.Text
	}
	return e.Fault.String()
}

// FaultOf returns the vendor's fault that an error stands for; its Reason is "" if it
// stands for none.
func FaultOf(err error) agent.Fault {
	var failed *TurnError
	switch {
	case errors.As(err, &failed):
		return failed.Fault
	case errors.Is(err, ErrLogin):
		return agent.Fault{Reason: agent.Login, Text: envelope.Line(err.Error(), maxFault)}
	}
	return agent.Fault{}
}

const maxFault = 300 // bytes of a fault's text

// wireError is a turn's error as Codex reports it.
type wireError struct {
	Message string          `json:"message"`
	Info    json.RawMessage `json:"codexErrorInfo"`
	Details string          `json:"additionalDetails"`
}

// turnError converts a turn's error that was reported at a time.
func (w *wireError) turnError(q quota, at time.Time) *TurnError {
	if w == nil {
		return &TurnError{Text: "the turn failed; Codex gave no reason"}
	}
	return w.of(errorInfo(w.Info), q, at)
}

// of is turnError with Codex's code for the error.
func (w *wireError) of(c code, q quota, at time.Time) *TurnError {
	e := &TurnError{Text: w.text()}
	if reason := w.reason(c); reason != "" {
		e.Fault = agent.Fault{Reason: reason, Text: envelope.Line(e.Text, maxFault)}
	}
	if e.Fault.Reason != agent.UsageLimit && e.Fault.Reason != agent.Billing {
		return e
	}
	if q.noCredit {
		e.Fault.Reason = agent.Billing
	}
	until := q.resets(at)
	if until.IsZero() {
		until = saidUntil(w.Message, at)
	}
	if !until.IsZero() {
		e.Fault.UntilMS = until.UnixMilli()
	}
	return e
}

func (w *wireError) text() string {
	if w.Details == "" || strings.Contains(w.Message, w.Details) {
		return w.Message
	}
	return w.Message + ": " + w.Details
}

// reason returns what Codex's code for the error stands for.
func (w *wireError) reason(c code) agent.Reason {
	switch c.name {
	case "unauthorized":
		return agent.Login
	case "usageLimitExceeded":
		if known := ownWords(w.Message); known != "" {
			return known
		}
		return agent.UsageLimit
	case "rateLimitExceeded":
		return agent.RateLimit
	case "serverOverloaded", "internalServerError", "flexUnavailable", "policyCapacityUnavailable":
		return agent.Overloaded
	case "contextWindowExceeded":
		return agent.ContextFull
	case "httpConnectionFailed", "responseStreamConnectionFailed", "responseStreamDisconnected", "responseTooManyFailedAttempts":
		if c.status != 0 {
			return statusReason(c.status)
		}
		if known := ownWords(w.Details); known != "" { // while it retries, Codex has no other code
			return known
		}
		return agent.Network
	case "other", "":
		return ownWords(w.Message)
	}
	return ""
}

func statusReason(status int) agent.Reason {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return agent.Login
	case status == http.StatusPaymentRequired:
		return agent.Billing
	case status == http.StatusTooManyRequests:
		return agent.RateLimit
	case status == http.StatusRequestTimeout:
		return agent.Network
	case status >= 500:
		return agent.Overloaded
	}
	return ""
}

// ownWords recognises the texts of Codex's own with which errors begin that share a code
// with others. No word of a vendor's or of a model's is among them.
func ownWords(text string) agent.Reason {
	for _, own := range []struct {
		begins string
		is     agent.Reason
	}{
		{"Quota exceeded. Check your plan and billing details.", agent.Billing},
		{"To use Codex with your ChatGPT plan, upgrade", agent.Billing},
		{"Missing environment variable: ", agent.Login},
		{"We’re currently experiencing high demand", agent.Overloaded},
		{"Selected model is at capacity", agent.Overloaded},
		{"rate limit exceeded: ", agent.RateLimit},
		{"Connection failed: ", agent.Network},
		{"stream disconnected before completion: stream closed before response.completed", agent.Network},
		{"stream disconnected before completion: idle timeout waiting for ", agent.Network},
		{"stream disconnected before completion: error sending request", agent.Network},
		{"stream disconnected before completion: Transport error: ", agent.Network},
	} {
		if strings.HasPrefix(text, own.begins) {
			return own.is
		}
	}
	return ""
}

// attempt returns which of how many attempts a notice of a retry announces; 0, 0 if it
// does not say so.
func (w *wireError) attempt() (n, of int) {
	if _, err := fmt.Sscanf(w.Message, "Reconnecting... %d/%d", &n, &of); err != nil {
		return 0, 0
	}
	return n, of
}

// saidUntil returns the time at the end of Codex's own sentence about a used up quota, in
// which it puts a reset that it reports nowhere else: "… try again at 2:29 AM.", or with
// the date "… at Nov 24th, 2026 3:34 AM.". A time without a date is the next after at.
func saidUntil(text string, at time.Time) time.Time {
	i := strings.LastIndex(text, "ry again at ")
	if i < 0 {
		return time.Time{}
	}
	said := strings.TrimSuffix(text[i+len("ry again at "):], ".")
	at = at.Local()
	if clock, err := time.ParseInLocation("3:04 PM", said, time.Local); err == nil {
		until := time.Date(at.Year(), at.Month(), at.Day(), clock.Hour(), clock.Minute(), 0, 0, time.Local)
		if until.Before(at.Add(-time.Minute)) {
			until = until.AddDate(0, 0, 1)
		}
		return until.Add(time.Minute) // its seconds are cut off
	}
	for _, day := range []string{"st", "nd", "rd", "th"} {
		if until, err := time.ParseInLocation("Jan 2"+day+", 2006 3:04 PM", said, time.Local); err == nil {
			return until.Add(time.Minute)
		}
	}
	return time.Time{}
}

// A quota is what Codex last reported of the account's limits. Its reports are sparse: what
// one lacks has not changed.
type quota struct {
	primary, secondary, spending window
	noCredit                     bool // the limit that was reached is that of the credit
}

type window struct {
	used  float64 // percent
	until time.Time
}

// update adds a report.
func (q *quota) update(params json.RawMessage) {
	type wireWindow struct {
		Used      *float64 `json:"usedPercent"`
		Remaining *float64 `json:"remainingPercent"`
		Resets    int64    `json:"resetsAt"` // seconds since 1970
	}
	var p struct {
		Limits struct {
			Primary   *wireWindow `json:"primary"`
			Secondary *wireWindow `json:"secondary"`
			Spending  *wireWindow `json:"individualLimit"`
			Reached   string      `json:"rateLimitReachedType"`
		} `json:"rateLimits"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	q.noCredit = strings.HasSuffix(p.Limits.Reached, "_credits_depleted")
	for to, w := range map[*window]*wireWindow{&q.primary: p.Limits.Primary, &q.secondary: p.Limits.Secondary, &q.spending: p.Limits.Spending} {
		switch {
		case w == nil:
			continue
		case w.Used != nil:
			to.used = *w.Used
		case w.Remaining != nil:
			to.used = 100 - *w.Remaining
		}
		to.until = time.Time{}
		if w.Resets > 0 {
			to.until = time.Unix(w.Resets, 0)
		}
	}
}

// resets returns when the last of the used up windows is renewed; zero if that is not
// known.
func (q quota) resets(now time.Time) (until time.Time) {
	for _, w := range []window{q.primary, q.secondary, q.spending} {
		if w.used >= 100 && w.until.After(now) && w.until.After(until) {
			until = w.until
		}
	}
	return until
}

// A code is what Codex calls an error, and the HTTP status behind it; 0 if it has none.
type code struct {
	name   string
	status int
}

// errorInfo reads a code: a word, or an object with a word as its key and an HTTP status
// below it.
func errorInfo(raw json.RawMessage) (c code) {
	if json.Unmarshal(raw, &c.name) == nil {
		return c
	}
	var deep map[string]struct {
		Status int `json:"httpStatusCode"`
		Old    int `json:"http_status_code"` // of mcp-server
	}
	if json.Unmarshal(raw, &deep) == nil {
		for name, d := range deep {
			return code{name, max(d.Status, d.Old)}
		}
	}
	return c
}

// Refused reports whether an error is Codex's own refusal of a request.
func Refused(err error) bool {
	var remote *remoteError
	return errors.As(err, &remote)
}

// openError recognises why Codex refused to open a thread. All refusals have the same
// code, so only the text is left.
func openError(err error) error {
	var remote *remoteError
	if !errors.As(err, &remote) {
		return err
	}
	for _, known := range []struct {
		says string
		is   error
	}{
		{"no rollout found for thread id", ErrGone},
		{"invalid session id", ErrGone},
		{"already has an active writer", ErrHeld},
	} {
		if strings.Contains(remote.Message, known.says) {
			return &opened{known.is, err}
		}
	}
	return err
}

// opened is an error that also matches one of this package's.
type opened struct{ is, err error }

func (o *opened) Error() string   { return o.err.Error() }
func (o *opened) Unwrap() []error { return []error{o.is, o.err} }
