// This file judges what Claude Code reports when the model does not answer: whether
// that is the vendor's fault, why, and until when.
//
// It judges by what Claude Code has classified itself, in its StopFailure hook and in the
// conversation's file: the kind of the error, the HTTP status, the limit and its reset.
// Words decide in three cases only, each noted where it is: for them nothing else exists.
// It keeps nothing; a crash loses nothing.

package claude

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"netsky/agent"
)

// Evidence is what Claude Code has recorded of a failed turn.
type Evidence struct {
	Kind    string // "rate_limit", as a hook or the conversation's file has it
	Status  int    // of the HTTP response; 0: there was none, or it is not known
	Known   bool   // Status is from the conversation's file, which has one if there was one
	Limit   bool   // a plan's limit is used up
	ResetMS int64  // when that limit ends; 0 if it is not known
	Scope   string // the model that alone is limited, "" if all are
	Text    string // the turn's last words
	Details string // the response's
	At      time.Time
}

// maxText limits how much of a text is examined, and maxWords how much is kept, in bytes.
const (
	maxFaultText = 4 << 10
	maxWords     = 200
)

// FaultOf judges a failed turn. It returns nil if the failure is no fault of the vendor's: the
// request itself was refused, or nothing is known about it.
func FaultOf(e Evidence) *agent.Fault {
	f := agent.Fault{Reason: e.reason(), Text: faultWords(cmp.Or(e.Text, e.Details))}
	switch f.Reason {
	case "":
		return nil
	case agent.UsageLimit:
		f.UntilMS, f.Scope = e.ResetMS, e.Scope
		if f.UntilMS == 0 {
			if at, ok := resetTime(e.Text, e.At); ok {
				f.UntilMS = at.UnixMilli()
			}
		}
	}
	return &f
}

func (e Evidence) reason() agent.Reason {
	switch e.Kind {
	case "authentication_failed", "oauth_org_not_allowed", "cloud_credential_error", "account_on_hold", "verification_required":
		return agent.Login
	case "billing_error":
		return agent.Billing
	case "rate_limit":
		// A file that lags behind the hook does not name the limit yet, one of an older
		// release never does: a reset in the words means the same.
		if _, stated := resetTime(e.Text, e.At); e.Limit || stated {
			return agent.UsageLimit
		}
		return agent.RateLimit
	case "overloaded":
		return agent.Overloaded
	case "server_error":
		if status := e.status(); status == 0 {
			return agent.Network
		}
		return agent.Overloaded
	case "invalid_request", "unknown", "":
		// Only the vendor's words tell a full context from other bad requests.
		if TooLong(e.Text) || TooLong(e.Details) {
			return agent.ContextFull
		}
	}
	if e.status() >= 500 {
		return agent.Overloaded
	}
	return ""
}

// apiError matches the words of a failure that had an HTTP response.
var apiError = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^API Error: ([1-5]\d\d)\b`) })

// status returns the response's HTTP status, from the words if the file did not have it
// yet; 0 if there was no response.
func (e Evidence) status() int {
	if e.Known || e.Status != 0 {
		return e.Status
	}
	if m := apiError().FindStringSubmatch(e.Text); m != nil {
		status, _ := strconv.Atoi(m[1])
		return status
	}
	return 0
}

// TooLong reports whether a text says that the model's context is full.
func TooLong(text string) bool {
	return strings.Contains(strings.ToLower(text[:min(len(text), maxFaultText)]), "prompt is too long")
}

// faultWords returns a text as one line.
func faultWords(s string) string {
	s = strings.Join(strings.Fields(s[:min(len(s), maxFaultText)]), " ")
	if len(s) > maxWords {
		s = s[:maxWords] + "…"
	}
	return strings.ToValidUTF8(s, "")
}

const recordPatience = 5 * time.Second // for the entry of a failed turn

// fault judges a StopFailure. Only the conversation's file names a plan's limit and its
// reset; Claude Code 2.1.329 writes it, or even begins it, in the moment it runs the hook.
func (h Hook) fault() *agent.Fault {
	var end agent.Event
	look := func() bool {
		end, _ = TurnEnd(h.Transcript, "", h.Turn)
		return end.Fault != nil
	}
	if h.Transcript != "" && h.Turn != "" && (look() || h.Error == "rate_limit" && until(context.Background(), recordPatience, look)) {
		return end.Fault
	}
	return FaultOf(Evidence{Kind: h.Error, Text: h.LastText, Details: h.Details, At: time.Now()})
}

// lastTry returns the retry that a conversation's file ends with.
func lastTry(transcript string) (r Retry, ok bool) {
	_ = backwards(transcript, chunk, func(data []byte) bool {
		if !bytes.Contains(data, systemMark) {
			return !bytes.Contains(data, assistantMark) && !bytes.Contains(data, userMark)
		}
		var e entry
		if json.Unmarshal(data, &e) == nil && e.Subtype == "api_error" {
			r, ok = e.Retry()
		}
		return !ok
	})
	return r, ok
}
