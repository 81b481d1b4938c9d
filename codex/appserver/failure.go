package appserver

import (
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// What a caller branches on.
var (
	// ErrGone: Codex has no such thread, and never will have it again.
	ErrGone = errors.New("codex has no such thread")
	// ErrHeld: another process has the thread open.
	ErrHeld = errors.New("another process has the thread open")
	// ErrTimeout: the turn ran too long and was interrupted.
	ErrTimeout = errors.New("the turn ran too long")
	// ErrInterrupted: somebody else interrupted the turn.
	ErrInterrupted = errors.New("the turn was interrupted")
)

// A Trouble says what a turn failed of.
type Trouble string

const (
	TroubleQuota   Trouble = "quota"   // used up until TurnError.Resets
	TroubleLogin   Trouble = "login"   // nobody is logged in, or not any more
	TroubleBusy    Trouble = "busy"    // the service is overloaded or out of order
	TroubleNetwork Trouble = "network" // the service cannot be reached
	TroubleContext Trouble = "context" // the conversation is longer than the model can hold
	TroubleModel   Trouble = "model"   // there is no such model
	TroubleOther   Trouble = "other"
)

// A TurnError is a turn that Codex gave up.
type TurnError struct {
	Trouble Trouble
	Text    string    // in the words of Codex
	Resets  time.Time // of a used up quota; zero: unknown
}

func (e *TurnError) Error() string {
	if !e.Resets.IsZero() {
		return e.Text + " (resets " + e.Resets.UTC().Format(time.RFC3339) + ")"
	}
	return e.Text
}

// wireError is a turn's error as Codex tells it.
type wireError struct {
	Message string          `json:"message"`
	Info    json.RawMessage `json:"codexErrorInfo"`
	Details string          `json:"additionalDetails"`
}

// turnError says in our words what a turn failed of.
func (w *wireError) turnError(resets time.Time) *TurnError {
	if w == nil {
		return &TurnError{Trouble: TroubleOther, Text: "the turn failed, and Codex does not say why"}
	}
	name, status := errorInfo(w.Info)
	return w.of(name, status, resets)
}

// of is turnError with Codex's name for the failure and its HTTP status.
func (w *wireError) of(name string, status int, resets time.Time) *TurnError {
	e := &TurnError{Trouble: TroubleOther, Text: w.Message}
	if w.Details != "" && !strings.Contains(w.Message, w.Details) {
		e.Text += ": " + w.Details
	}
	switch name {
	case "usageLimitExceeded", "sessionBudgetExceeded":
		e.Trouble, e.Resets = TroubleQuota, resets
	case "unauthorized":
		e.Trouble = TroubleLogin
	case "rateLimitExceeded", "serverOverloaded", "internalServerError", "flexUnavailable", "policyCapacityUnavailable":
		e.Trouble = TroubleBusy
	case "contextWindowExceeded":
		e.Trouble = TroubleContext
	case "modelNotFound":
		e.Trouble = TroubleModel
	case "httpConnectionFailed", "responseStreamConnectionFailed", "responseStreamDisconnected", "responseTooManyFailedAttempts":
		switch {
		case status == 401 || status == 403:
			e.Trouble = TroubleLogin
		case status >= 400:
			e.Trouble = TroubleBusy
		default:
			e.Trouble = TroubleNetwork
		}
	}
	if e.Trouble == TroubleOther && strings.Contains(w.Message, "401 Unauthorized") {
		e.Trouble = TroubleLogin // of a provider that is not OpenAI's own
	}
	return e
}

// errorInfo reads what is a word, or a word with an HTTP status below it.
func errorInfo(raw json.RawMessage) (name string, status int) {
	if json.Unmarshal(raw, &name) == nil {
		return name, 0
	}
	var deep map[string]struct {
		Status int `json:"httpStatusCode"`
	}
	if json.Unmarshal(raw, &deep) == nil {
		for name, d := range deep {
			return name, d.Status
		}
	}
	return "", 0
}

// Refused reports whether an error is Codex's own no to what it was asked.
func Refused(err error) bool {
	var remote *remoteError
	return errors.As(err, &remote)
}

// openError knows what a refusal to open a thread means. All of them have the
// same code, so there is only what they say.
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

// opened is an error that also matches one of our own.
type opened struct{ is, err error }

func (o *opened) Error() string   { return o.err.Error() }
func (o *opened) Unwrap() []error { return []error{o.is, o.err} }
