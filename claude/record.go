package claude

import (
	"time"

	"netsky/agent"
)

// A FaultRecord is what an entry of a conversation's file says of a failed request, to be
// embedded in what reads such entries. A field of another type than expected says nothing.
type FaultRecord struct {
	Error     any `json:"error"` // the kind; an object in an entry of a retry
	Status    any `json:"apiErrorStatus"`
	Kind      any `json:"apiError"`
	Details   any `json:"errorDetails"`
	Quota     any `json:"quotaLimits"`
	Timestamp any `json:"timestamp"`
	Attempt   any `json:"retryAttempt"`
	Of        any `json:"maxRetries"`
}

// scopes are the limits of one model, as Claude Code 2.1.329 names them. Any other limit,
// also an unknown one, counts as the account's.
var scopes = map[string]string{"seven_day_opus": "opus", "seven_day_sonnet": "sonnet", "seven_day_overage_included": "fable"}

// What returns the kind of the error, "" if there is none.
func (r FaultRecord) What() string { return text(r.Error) }

// Fault judges the failure that ended a turn with these words; nil if it is no fault of
// the vendor's.
func (r FaultRecord) Fault(words string) *agent.Fault {
	quota, _ := r.Quota.(map[string]any)
	at, err := time.Parse(time.RFC3339, text(r.Timestamp))
	if err != nil {
		at = time.Now()
	}
	rejected, scope := text(quota["status"]) == "rejected", ""
	if rejected {
		scope = scopes[text(quota["rateLimitType"])]
	}
	return FaultOf(Evidence{
		Kind: r.What(), Status: number(r.Status), Text: words, Details: text(r.Details), At: at,
		Limit:   text(r.Kind) == "usage_limit_reached" || rejected,
		ResetMS: int64(number(quota["resetsAt"])) * 1000, Scope: scope,
	})
}

// Retry returns the retry that an entry of the subtype api_error records: some releases
// write one for each, 2.1.329 does not.
func (r FaultRecord) Retry() (_ Retry, ok bool) {
	e, _ := r.Error.(map[string]any)
	message := text(e["message"])
	reason := byStatus(number(e["status"]))
	if reason == "" {
		reason = retried(message)
	}
	n := number(r.Attempt)
	return Retry{Fault: agent.Fault{Reason: reason, Text: faultWords(message)}, Attempt: n, Of: number(r.Of)}, n > 0
}

func text(v any) string { s, _ := v.(string); return s }

func number(v any) int { n, _ := v.(float64); return int(n) }
