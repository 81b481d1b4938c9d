package appserver

import (
	"encoding/json"
	"errors"
	"strings"
	"time"
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

// A Trouble is the reason for which a turn failed.
type Trouble string

const (
	TroubleQuota   Trouble = "quota"   // used up until TurnError.Resets
	TroubleLogin   Trouble = "login"   // not logged in, or no longer
	TroubleBusy    Trouble = "busy"    // the service is overloaded or failing
	TroubleNetwork Trouble = "network" // the service cannot be reached
	TroubleContext Trouble = "context" // the conversation exceeds the model's context
	TroubleModel   Trouble = "model"   // there is no such model
	TroubleOther   Trouble = "other"
)

// A TurnError is a turn that failed.
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

// wireError is a turn's error as Codex reports it.
type wireError struct {
	Message string          `json:"message"`
	Info    json.RawMessage `json:"codexErrorInfo"`
	Details string          `json:"additionalDetails"`
}

// turnError converts a turn's error.
func (w *wireError) turnError(resets time.Time) *TurnError {
	if w == nil {
		return &TurnError{Trouble: TroubleOther, Text: "the turn failed; Codex gave no reason"}
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
		e.Trouble = TroubleLogin // from a provider other than OpenAI
	}
	return e
}

// errorInfo reads either a word, or an object with a word as its key and an HTTP status
// below it.
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
