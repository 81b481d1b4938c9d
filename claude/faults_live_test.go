//go:build live

package claude_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/loopmodel"
	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/testworld"
)

// quick lets Claude Code try again once, not ten times.
const quick = "CLAUDE_CODE_MAX_RETRIES=1"

// mustFail gives a turn whose answer fails, and checks what its event and its conversation
// say of it.
func (l *live) mustFail(text string, reply func() *anthropic.Reply, kind string, want *agent.Fault, words string) agent.Event {
	l.Helper()
	before := len(l.events(agent.EventStopFailed))
	if reply != nil {
		l.answer(text, func(int) *anthropic.Reply { return reply() })
	}
	l.mustPush(text)
	l.wait(text+": the turn fails", func() bool { return len(l.events(agent.EventStopFailed)) > before })
	e := l.events(agent.EventStopFailed)[before]
	check := func(what string, got agent.Event) {
		l.Helper()
		same := (got.Fault == nil) == (want == nil)
		if same && want != nil {
			f := *got.Fault
			same, f.Text = strings.Contains(f.Text, words), ""
			same = same && f == *want
		}
		if !same || got.Error != kind {
			data, _ := json.Marshal(got)
			l.Errorf("%s: %s %s, want %s, %+v", text, what, data, kind, want)
		}
	}
	check("the event", e)
	var end agent.Event
	l.wait(text+": the conversation shows the end", func() bool {
		var ok bool
		end, ok = l.Ended("", e.ID)
		return ok
	})
	check("the conversation", end)
	return e
}

// What a turn fails of is told by what Claude Code has recorded, and does not keep the next
// message back, unless it is the conversation's own length.
func TestFaults(t *testing.T) {
	t.Parallel()
	l := mustLive(t, "bypassPermissions", quick)
	if name, changed := l.Account(); !strings.HasPrefix(name, "claude api key ") || !strings.HasSuffix(name, " at "+strings.TrimPrefix(l.model.URL(), "http://")) || !changed.IsZero() {
		t.Errorf("Account = %q, %v", name, changed)
	}
	refuse := func(status int, kind, message string, headers ...string) func() *anthropic.Reply {
		return func() *anthropic.Reply { return anthropic.Error(status, kind, message, headers...) }
	}
	var asked atomic.Int32
	inStream := func() *anthropic.Reply {
		if asked.Add(1) > 1 { // it is asked again without a stream
			return anthropic.Error(529, "overloaded_error", "Overloaded")
		}
		return &anthropic.Reply{Text: "never", Breaks: "overloaded_error"}
	}
	for _, tt := range []struct {
		name  string
		reply func() *anthropic.Reply
		kind  string
		want  agent.Reason // "": none
		words string
		state agent.State
	}{
		{"a bad key", refuse(401, "authentication_error", "invalid x-api-key"), "authentication_failed", agent.Login, "Invalid API key", agent.Idle},
		{"no permission", refuse(403, "permission_error", "no"), "authentication_failed", agent.Login, "", agent.Idle},
		{"a burst", refuse(429, "rate_limit_error", "slow down", "retry-after", "3600"), "rate_limit", agent.RateLimit, "429", agent.Idle},
		{"no credit", refuse(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."), "billing_error", agent.Billing, "Credit balance", agent.Idle},
		{"overloaded", refuse(529, "overloaded_error", "Overloaded"), "server_error", agent.Overloaded, "529", agent.Idle},
		{"failing", refuse(500, "api_error", "Internal server error"), "server_error", agent.Overloaded, "500", agent.Idle},
		{"overloaded in its stream", inStream, "server_error", agent.Overloaded, "", agent.Idle},
		{"a bad request", refuse(400, "invalid_request_error", "messages.0: something is wrong"), "unknown", "", "", agent.Idle},
		{"too long", refuse(400, "invalid_request_error", "prompt is too long: 215732 tokens > 200000 maximum"), "invalid_request", agent.ContextFull, "Prompt is too long", agent.Blocked},
	} {
		var want *agent.Fault
		if tt.want != "" {
			want = &agent.Fault{Reason: tt.want}
		}
		l.mustFail(tt.name, tt.reply, tt.kind, want, tt.words)
		if r := l.mustState(tt.state, ""); tt.state == agent.Blocked && r.Fault.Reason != tt.want {
			t.Errorf("%s: State = %+v, want the fault %s", tt.name, r, tt.want)
		}
	}
	l.mustPush("short")
	if got := l.mustStop(1); got.Text != "echo: short" || got.Fault != nil {
		t.Errorf("after all that: %+v", got)
	}
	if r := l.mustState(agent.Idle, ""); r.Fault != (agent.Fault{}) {
		t.Errorf("State = %+v, want no fault", r)
	}
	l.model.Close()
	l.mustFail("nobody hears this", nil, "server_error", &agent.Fault{Reason: agent.Network}, "ECONNREFUSED")
}

// A subscriber's faults: the reset is the service's own, to the second, and the dialog that
// a limit opens does not stay in the way of the next message.
func TestFaultsOfSubscription(t *testing.T) {
	t.Parallel()
	l := mustLive(t, "bypassPermissions", quick, "ANTHROPIC_API_KEY=", "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-loopmodel")
	if name, _ := l.Account(); !strings.HasPrefix(name, "claude token ") {
		t.Errorf("Account = %q", name)
	}
	l.mustFail("expired", func() *anthropic.Reply {
		return anthropic.Error(http.StatusUnauthorized, "authentication_error", "OAuth token has expired. Please obtain a new token or refresh your existing token.")
	}, "authentication_failed", &agent.Fault{Reason: agent.Login}, "/login")
	l.mustState(agent.Idle, "")
	reset := time.Now().Add(40 * time.Minute).Truncate(time.Second)
	l.mustFail("limited", func() *anthropic.Reply { return anthropic.Limit(reset) }, "rate_limit",
		&agent.Fault{Reason: agent.UsageLimit, UntilMS: reset.UnixMilli()}, "5-hour limit")
	r := l.mustState(agent.Blocked, "usage limit")
	if r.Fault.Reason != agent.UsageLimit || r.Fault.UntilMS != reset.UnixMilli() {
		t.Errorf("State = %+v, want the fault %s until %v", r, agent.UsageLimit, reset)
	}
	c := l.Courier()
	l.wait("the dialog is closed", func() bool { return c.State(l.ctx).State == agent.Idle })
	l.mustPush("well again")
	testworld.Equal(t, l.mustStop(1).Text, "echo: well again", "after the limit")
	l.mustFail("limited to another model", func() *anthropic.Reply { return anthropic.LimitOf("seven_day_opus", reset) }, "rate_limit",
		&agent.Fault{Reason: agent.UsageLimit, UntilMS: reset.UnixMilli(), Scope: "opus"}, "Opus limit")
}

// While Claude Code tries again itself, the state says so, and why.
func TestFaultsRetried(t *testing.T) {
	t.Parallel()
	l := mustLive(t, "bypassPermissions")
	well := make(chan struct{})
	overloaded := func(int) *anthropic.Reply {
		select {
		case <-well:
			return nil
		default:
			return anthropic.Error(529, "overloaded_error", "Overloaded")
		}
	}
	for i, tt := range []struct {
		text  string
		rule  func(n int) *anthropic.Reply
		want  agent.Reason // of the state meanwhile; "": too short to be seen
		words string
	}{
		{"overloaded", overloaded, agent.Overloaded, "retrying, attempt "},
		{"slow down", func(n int) *anthropic.Reply {
			if n > 1 {
				return nil
			}
			return anthropic.Error(429, "rate_limit_error", "slow down", "retry-after", "8")
		}, agent.Overloaded, "retrying, attempt 1 of 10"}, // 2.1.329 shows "API error" alone
		{"cut", func(n int) *anthropic.Reply {
			if n > 1 {
				return nil
			}
			return &anthropic.Reply{Text: "half", Breaks: loopmodel.Cut}
		}, "", ""},
	} {
		l.answer(tt.text, tt.rule)
		l.mustPush(tt.text)
		if tt.want != "" {
			r := l.mustState(agent.Busy, tt.words)
			if r.Fault.Reason != tt.want || r.Attempt < 1 || r.Of != 10 {
				t.Errorf("%s: State = %+v, want the fault %s and an attempt of 10", tt.text, r, tt.want)
			}
		}
		if tt.text == "overloaded" {
			close(well)
		}
		testworld.Equal(t, l.mustStop(i+1).Text, "echo: "+tt.text, "%s", tt.text)
		if r := l.mustState(agent.Idle, ""); r.Fault != (agent.Fault{}) || r.Attempt != 0 {
			t.Errorf("%s: State = %+v, want no fault", tt.text, r)
		}
	}
	testworld.Equal(t, len(l.events(agent.EventStopFailed)), 0, "turns failed")
}
