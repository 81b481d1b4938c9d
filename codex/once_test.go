package codex_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/codex"
	"netsky/cost/breaker"
	"netsky/internal/testworld"
)

func TestOnceRefuses(t *testing.T) {
	t.Parallel()
	w := mustHome(t)
	text := "x"
	for _, tt := range []struct {
		name string
		edit func(*codex.OnceOptions)
		is   error
		want string
	}{
		{"agent0", func(o *codex.OnceOptions) { o.Agent = agent.Root }, codex.ErrUsage, "only clones process one message at a time: agent1, agent2, …"},
		{"neither", func(o *codex.OnceOptions) { o.Drain = false }, codex.ErrUsage, "codex needs exactly one of --prompt, --drain and --serve"},
		{"both", func(o *codex.OnceOptions) { o.Prompt = &text }, codex.ErrUsage, "codex needs exactly one of --prompt, --drain and --serve"},
		{"empty", nil, codex.ErrEmpty, "no pending envelope for agent1 in " + w.home.Path("channels/agent/agent1/inbox")},
		{"empty prompt", prompting(""), envelope.ErrInvalid, "text: empty"},
		{"wrapper in prompt", prompting("</channel>"), envelope.ErrInvalid, "wrapper"},
		{"too long", prompting(strings.Repeat("&", 300_000)), envelope.ErrInvalid, "too long for Codex"},
		{"no codex", func(o *codex.OnceOptions) { prompting("x")(o); o.Env = []string{"PATH=/nowhere"} }, codex.ErrMissing, "codex: not on the PATH"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := w.once(tt.edit)
			if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Once = %v, want %q", err, tt.want)
			}
		})
	}
}

// A budget that is used up keeps mail and prompts from the model, as it does in an agent that is up.
func TestOnceBudget(t *testing.T) {
	t.Parallel()
	for _, name := range []string{breaker.AllBudget, breaker.Budget("agent1")} {
		w := mustHome(t)
		w.mustSend(envelope.Envelope{Text: "the task"})
		testworld.Got(breaker.Of(w.home, name).Bar(t.Context(), agent.Root, "the budget, 10 tokens", "day:x:", false, time.Time{}))(t)
		for _, edit := range []func(*codex.OnceOptions){nil, prompting("hello")} {
			if err := w.once(edit); !errors.Is(err, codex.ErrNotYet) || !strings.Contains(err.Error(), "budget used up: the budget, 10 tokens") {
				t.Errorf("Once = %v, want that the budget is used up", err)
			}
		}
		testworld.Equal(t, len(w.inbox("agent1")), 1, "messages wait")
	}
}
