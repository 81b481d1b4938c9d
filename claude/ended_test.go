package claude_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/claude"
	"netsky/internal/testworld"
)

// Lines of a conversation's file, as Claude Code 2.1.329 writes them.
func prompt(turn, id string) string {
	return fmt.Sprintf(`{"isSidechain":false,"promptId":%q,"type":"user","isMeta":true,"origin":{"kind":"peer"},"message":{"role":"user",`+
		`"content":"Another Claude session sent a message:\n<channel source=\"agent\" from=\"owner\" id=\"%s\">\nhi\n</channel>"}}`, turn, id)
}

func typed(turn, text string) string {
	return fmt.Sprintf(`{"promptId":%q,"type":"user","origin":{"kind":"human"},"message":{"role":"user","content":%q}}`, turn, text)
}

func says(stop, text string) string {
	return fmt.Sprintf(`{"type":"assistant","message":{"id":"msg_1","model":"m","role":"assistant","stop_reason":%s,"content":[{"type":"text","text":%q}]}}`, stop, text)
}

const (
	midTurn    = `{"type":"attachment","attachment":{"type":"queued_command","prompt":"<channel source=\"agent\" from=\"owner\" id=\"m-2\">\nhi\n</channel>"}}`
	calls      = `{"type":"assistant","message":{"id":"msg_0","model":"m","stop_reason":"tool_use","content":[{"type":"tool_use","name":"Bash"}]}}`
	gave       = `{"type":"user","promptId":"t-1","message":{"role":"user","content":[{"type":"tool_result","content":"x"}]}}`
	hookKilled = `{"type":"attachment","attachment":{"type":"hook_non_blocking_error"}}`
	hooksRan   = `{"type":"system","subtype":"stop_hook_summary"}`
	turnOver   = `{"type":"system","subtype":"turn_duration","isMeta":false}`
	escaped    = `{"type":"user","promptId":"t-1","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]}}`
	resumed    = `{"type":"assistant","message":{"id":"u","model":"<synthetic>","stop_reason":"stop_sequence","content":[{"type":"text","text":"No response requested."}]}}`
	refused    = `{"type":"assistant","error":"authentication_failed","isApiErrorMessage":true,"message":{"model":"<synthetic>","stop_reason":"stop_sequence","content":[{"type":"text","text":"Please run /login"}]}}`
	limited    = `{"type":"assistant","error":"rate_limit","isApiErrorMessage":true,"apiErrorStatus":429,"apiError":"usage_limit_reached",` +
		`"quotaLimits":{"status":"rejected","resetsAt":1795398265,"rateLimitType":"five_hour"},` +
		`"message":{"model":"<synthetic>","stop_reason":"stop_sequence","content":[{"type":"text","text":"You've hit your 5-hour limit"}]}}`
	feedback    = `{"type":"user","isMeta":true,"message":{"role":"user","content":"Stop hook feedback:\n[x]: go on"}}`
	slash       = `{"type":"user","message":{"role":"user","content":"<command-name>/cost</command-name>"}}`
	queued      = `{"type":"queue-operation","operation":"enqueue","content":"<channel source=\"agent\" from=\"owner\" id=\"m-1\">\nhi\n</channel>"}`
	subagent    = `{"type":"assistant","isSidechain":true,"message":{"model":"m","stop_reason":"end_turn","content":[{"type":"text","text":"of a subagent"}]}}`
	other       = `{"type":"last-prompt","leafUuid":"x"}`
	wordless    = `{"type":"assistant","message":{"id":"msg_1","model":"m","stop_reason":"end_turn","content":[{"type":"thinking","thinking":"x"}]}}`
	serverError = `{"type":"system","subtype":"api_error","error":{"message":"x"}}`
)

func TestTurnEnd(t *testing.T) {
	t.Parallel()
	well := func(text string) agent.Event { return agent.Event{Event: agent.EventStop, ID: "t-1", Text: text} }
	broken := agent.Event{Event: agent.EventStopFailed, ID: "t-1", Error: "interrupted"}
	nothing := agent.Event{ID: "t-1"}
	said, first := says(`"end_turn"`, "said"), prompt("t-1", "m-1")
	for _, tt := range []struct {
		name  string
		lines []string
		want  agent.Event // of the turn by its number
		mark  agent.Event // by the envelope m-1; the zero Event: as by the number
	}{
		{name: "whole", lines: []string{first, said, hookKilled, hooksRan, turnOver, other}, want: well("said")},
		{name: "the hooks still ran", lines: []string{first, said}, want: well("said")},
		{name: "after a tool", lines: []string{first, calls, gave, serverError, said, hooksRan}, want: well("said")},
		{name: "it still runs", lines: []string{first}, want: nothing},
		{name: "a tool runs", lines: []string{first, says(`"tool_use"`, "I look"), calls}, want: nothing},
		{name: "a tool has run", lines: []string{first, says(`"tool_use"`, "I look"), calls, gave}, want: nothing},
		{name: "cut off in the middle of a text", lines: []string{first, says(`null`, "half a")}, want: nothing},
		{name: "too long a text", lines: []string{first, says(`"max_tokens"`, "half a")}, want: nothing},
		{name: "no word", lines: []string{first, wordless}, want: nothing},
		{name: "an old release, that has let it go", lines: []string{first, says(`null`, "said"), hooksRan}, want: well("said")},
		{name: "a stop hook has more to say", lines: []string{first, said, hooksRan, feedback}, want: nothing},
		{name: "a stop hook had more to say", lines: []string{first, said, hooksRan, feedback, says(`"end_turn"`, "more"), hooksRan, turnOver}, want: well("more")},
		{name: "of a subagent", lines: []string{first, calls, subagent}, want: nothing},
		{name: "escaped", lines: []string{first, calls, escaped, other}, want: broken, mark: nothing},
		{name: "escaped in the middle of a text", lines: []string{first, says(`null`, "half a"), escaped}, want: broken, mark: nothing},
		{name: "killed, and gone on with", lines: []string{first, calls, resumed, typed("t-2", "go on"), said}, want: broken, mark: nothing},
		{name: "killed, gone on with without a word of that", lines: []string{first, typed("t-2", "go on"), said}, want: nothing},
		{name: "refused", lines: []string{first, refused, turnOver},
			want: agent.Event{Event: agent.EventStopFailed, ID: "t-1", Text: "Please run /login", Error: "authentication_failed", Fault: &agent.Fault{Reason: agent.Login, Text: "Please run /login"}}},
		{name: "limited", lines: []string{first, limited},
			want: agent.Event{Event: agent.EventStopFailed, ID: "t-1", Text: "You've hit your 5-hour limit", Error: "rate_limit",
				Fault: &agent.Fault{Reason: agent.UsageLimit, UntilMS: 1795398265000, Text: "You've hit your 5-hour limit"}}},
		{name: "a bad request", lines: []string{first, strings.Replace(refused, "authentication_failed", "invalid_request", 1)},
			want: agent.Event{Event: agent.EventStopFailed, ID: "t-1", Text: "Please run /login", Error: "invalid_request"}},
		{name: "another turn came after", lines: []string{first, said, hooksRan, turnOver, prompt("t-2", "m-9"), says(`"end_turn"`, "of another")}, want: well("said")},
		{name: "another came after, without a word between", lines: []string{first, said, typed("t-2", "x"), says(`"end_turn"`, "of another")}, want: well("said")},
		{name: "another came before", lines: []string{typed("t-0", "x"), says(`"end_turn"`, "of another"), turnOver, first}, want: nothing},
		{name: "a turn of its own after it", lines: []string{first, said, hooksRan, turnOver, feedback, says(`"end_turn"`, "of a task")}, want: well("said")},
		{name: "a command after it", lines: []string{first, said, turnOver, slash}, want: well("said")},
		{name: "two prompts of one turn", lines: []string{first, calls, gave, typed("t-1", "and"), said}, want: well("said"), mark: nothing},
		{name: "given in the middle of the turn", lines: []string{prompt("t-1", "m-7"), calls, gave, strings.ReplaceAll(midTurn, "m-2", "m-1"), said, hooksRan},
			want: well("said"), mark: agent.Event{Event: agent.EventStop, Text: "said"}},
		{name: "only queued", lines: []string{prompt("t-1", "m-7"), said, turnOver, queued}, want: well("said"), mark: agent.Event{}},
		{name: "told twice", lines: []string{prompt("t-0", "m-1"), says(`"end_turn"`, "once"), turnOver, first, said}, want: well("said")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "c.jsonl")
			testworld.Must(t, os.WriteFile(file, []byte(strings.Join(tt.lines, "\n")+"\n"), 0o600))
			check := func(what, id, number string, want agent.Event) {
				t.Helper()
				got, ok := claude.TurnEnd(file, id, number)
				if !reflect.DeepEqual(got, want) || ok != (want.Event != "") {
					t.Errorf("by its %s: %+v, %v, want %+v", what, got, ok, want)
				}
			}
			check("number", "m-1", "t-1", tt.want)
			if tt.name != "only queued" && tt.mark.ID+tt.mark.Text == "" {
				tt.mark = tt.want
			}
			check("envelope", "m-1", "", tt.mark)
			check("number, which is none", "m-1", "t-7", agent.Event{})
			check("envelope, which is none", "m-77", "", agent.Event{})
		})
	}
	if _, ok := claude.TurnEnd(filepath.Join(t.TempDir(), "none"), "m-1", "t-1"); ok {
		t.Errorf("an end in a file that is not there")
	}
}
