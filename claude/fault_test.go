package claude_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"netsky/agent"
	"netsky/claude"
	"netsky/internal/testworld"
)

// The words and classifications are those of Claude Code 2.1.329.
func TestOf(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 1, 43, 44, 0, time.UTC)
	const reset = 1795398265
	limit := map[string]any{"status": "rejected", "resetsAt": reset, "rateLimitType": "five_hour"}
	of := func(kind string) map[string]any {
		quota := map[string]any{"status": "rejected", "resetsAt": reset, "rateLimitType": kind}
		return map[string]any{"error": "rate_limit", "apiErrorStatus": 429, "apiError": "usage_limit_reached", "quotaLimits": quota}
	}
	for _, tt := range []struct {
		name   string
		record map[string]any
		words  string
		want   *agent.Fault
	}{
		{"an expired login", map[string]any{"error": "authentication_failed", "apiErrorStatus": 401}, "Please run /login", &agent.Fault{Reason: agent.Login}},
		{"an organisation without it", map[string]any{"error": "oauth_org_not_allowed"}, "no", &agent.Fault{Reason: agent.Login}},
		{"an account on hold", map[string]any{"error": "account_on_hold"}, "no", &agent.Fault{Reason: agent.Login}},
		{"a cloud's login", map[string]any{"error": "cloud_credential_error"}, "no", &agent.Fault{Reason: agent.Login}},
		{"to be verified", map[string]any{"error": "verification_required"}, "no", &agent.Fault{Reason: agent.Login}},
		{"no credit", map[string]any{"error": "billing_error", "apiErrorStatus": 400}, "Credit balance is too low", &agent.Fault{Reason: agent.Billing}},
		{"a burst", map[string]any{"error": "rate_limit", "apiErrorStatus": 429}, "API Error: Request rejected (429)", &agent.Fault{Reason: agent.RateLimit}},
		{"a plan's limit", map[string]any{"error": "rate_limit", "apiErrorStatus": 429, "apiError": "usage_limit_reached", "quotaLimits": limit},
			"You've hit your 5-hour limit · resets 3pm (UTC)", &agent.Fault{Reason: agent.UsageLimit, UntilMS: reset * 1000}},
		{"a limit of Opus", of("seven_day_opus"), "You've hit your Opus limit", &agent.Fault{Reason: agent.UsageLimit, UntilMS: reset * 1000, Scope: "opus"}},
		{"a limit of Sonnet", of("seven_day_sonnet"), "You've hit your Sonnet limit", &agent.Fault{Reason: agent.UsageLimit, UntilMS: reset * 1000, Scope: "sonnet"}},
		{"a limit of Fable", of("seven_day_overage_included"), "You've reached your Fable limit", &agent.Fault{Reason: agent.UsageLimit, UntilMS: reset * 1000, Scope: "fable"}},
		{"a week's limit", of("seven_day"), "You've hit your weekly limit", &agent.Fault{Reason: agent.UsageLimit, UntilMS: reset * 1000}},
		{"an unknown limit", of("seven_day_haiku"), "You've hit your Opus limit", &agent.Fault{Reason: agent.UsageLimit, UntilMS: reset * 1000}},
		{"a limit of a model, in words only", map[string]any{"error": "rate_limit", "apiError": "usage_limit_reached"}, "You've hit your Opus limit", &agent.Fault{Reason: agent.UsageLimit}},
		{"a burst, with a model's limit not used up", map[string]any{"error": "rate_limit", "quotaLimits": map[string]any{"status": "allowed_warning", "rateLimitType": "seven_day_opus"}},
			"API Error: Request rejected (429)", &agent.Fault{Reason: agent.RateLimit}},
		{"a plan's limit without a reset", map[string]any{"error": "rate_limit", "apiError": "usage_limit_reached"}, "You've hit your limit", &agent.Fault{Reason: agent.UsageLimit}},
		{"a plan's limit, in words", map[string]any{"error": "rate_limit"}, "You've hit your 5-hour limit · resets 1:44am (UTC)",
			&agent.Fault{Reason: agent.UsageLimit, UntilMS: time.Date(2026, 11, 23, 1, 45, 0, 0, time.UTC).UnixMilli()}},
		{"a plan's limit of days, in words", map[string]any{"error": "rate_limit"}, "You've hit your weekly limit · resets Nov 25 at 3pm (UTC)",
			&agent.Fault{Reason: agent.UsageLimit, UntilMS: time.Date(2026, 11, 25, 15, 1, 0, 0, time.UTC).UnixMilli()}},
		{"a plan's limit until tomorrow, in words", map[string]any{"error": "rate_limit"}, "You've hit your session limit · resets 1:40am (UTC)",
			&agent.Fault{Reason: agent.UsageLimit, UntilMS: time.Date(2026, 11, 24, 1, 41, 0, 0, time.UTC).UnixMilli()}},
		{"a plan's limit within this minute, in words", map[string]any{"error": "rate_limit"}, "You've hit your session limit · resets 1:43am (UTC)",
			&agent.Fault{Reason: agent.UsageLimit, UntilMS: time.Date(2026, 11, 23, 1, 44, 0, 0, time.UTC).UnixMilli()}},
		{"overloaded", map[string]any{"error": "server_error", "apiErrorStatus": 529}, "API Error: 529 Overloaded.", &agent.Fault{Reason: agent.Overloaded}},
		{"overloaded, in words", map[string]any{"error": "server_error"}, "API Error: 529 Overloaded.", &agent.Fault{Reason: agent.Overloaded}},
		{"overloaded, of its own kind", map[string]any{"error": "overloaded"}, "x", &agent.Fault{Reason: agent.Overloaded}},
		{"failing", map[string]any{"error": "server_error", "apiErrorStatus": 500}, "API Error: 500 Internal server error.", &agent.Fault{Reason: agent.Overloaded}},
		{"failing, and not classified", map[string]any{"error": "unknown", "apiErrorStatus": 503}, "x", &agent.Fault{Reason: agent.Overloaded}},
		{"refused", map[string]any{"error": "server_error"}, "API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)", &agent.Fault{Reason: agent.Network}},
		{"too slow", map[string]any{"error": "server_error"}, "Request timed out.", &agent.Fault{Reason: agent.Network}},
		{"too long", map[string]any{"error": "invalid_request", "apiErrorStatus": 400, "errorDetails": "400 prompt is too long: 5 > 4"}, "no room", &agent.Fault{Reason: agent.ContextFull}},
		{"a bad request", map[string]any{"error": "invalid_request", "apiErrorStatus": 400}, "API Error: 400 messages.0: wrong", nil},
		{"no such model", map[string]any{"error": "model_not_found", "apiErrorStatus": 404}, "no", nil},
		{"too much to say", map[string]any{"error": "max_output_tokens"}, "no", nil},
		{"unknown", map[string]any{"error": "unknown"}, "no", nil},
		{"other types", map[string]any{"error": []int{1}, "apiErrorStatus": "429", "quotaLimits": 7, "timestamp": 7}, "no", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, ok := tt.record["timestamp"]; !ok {
				tt.record["timestamp"] = at.Format(time.RFC3339Nano)
			}
			data := testworld.Got(json.Marshal(tt.record))(t)
			var r claude.FaultRecord
			testworld.Must(t, json.Unmarshal(data, &r))
			if tt.want != nil {
				tt.want.Text = tt.words
			}
			if got := r.Fault(tt.words); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%s: %+v, want %+v", data, got, tt.want)
			}
		})
	}
}

func TestRetrying(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		screen string
		reason agent.Reason // "": no retry
		want   string
	}{
		{"✻ 529 Overloaded · retrying in 2s · attempt 5/10", agent.Overloaded, "retrying, attempt 5 of 10: vendor overloaded"},
		{"✻ 500 Internal server error · retrying in 1s · attempt 1/10", agent.Overloaded, "retrying, attempt 1 of 10: vendor overloaded"},
		{"✻ API error · retrying in 8s · attempt 1/10", agent.Overloaded, "retrying, attempt 1 of 10: vendor overloaded"},
		{"✻ 401 invalid x-api-key · retrying in 8s · attempt 5/10", agent.Login, "retrying, attempt 5 of 10: not logged in"},
		{"✻ 429 slow down · retrying in 8s · attempt 5/10", agent.RateLimit, "retrying, attempt 5 of 10: rate limit"},
		{"✻ Connection refused — a firewall or proxy may be blocking it (ECONNREFUSE… · retrying in 10s · attempt 5/10", agent.Network, "retrying, attempt 5 of 10: vendor not reachable"},
		{"✻ Waiting for API response · will retry in 4m 15s · check your network", agent.Network, "retrying: vendor not reachable"},
		{"✻ 5-hour limit reached · retrying in 4s (5:16pm)", agent.UsageLimit, "retrying: usage limit"},
		{"  ✻ 529 Overloaded · retrying in 2s · attempt 5/10", "", ""},
		{"● All is well", "", ""},
	} {
		got, ok := claude.Retrying("● hello\n\n" + tt.screen + "\n  ⎿  a tip\n\n────\n❯ \n────\n")
		if ok != (tt.reason != "") || ok && (got.Fault.Reason != tt.reason || got.String() != tt.want) {
			t.Errorf("%s: %+v, %v, want %s: %q", tt.screen, got, ok, tt.reason, tt.want)
		}
	}
}
