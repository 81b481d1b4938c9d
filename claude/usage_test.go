package claude_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/claude"
	"netsky/internal/testworld"
)

// Lines as Claude Code 2.1 writes them, shortened.
const (
	shell  = `{"parentUuid":"p","isSidechain":false,"message":{"model":"claude-opus-5-5","id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"one"}],"stop_reason":"tool_use","usage":{"input_tokens":4,"cache_creation_input_tokens":12350,"cache_read_input_tokens":7,"output_tokens":1,"cache_creation":{"ephemeral_5m_input_tokens":12350}}},"requestId":"req_1","type":"assistant","uuid":"u1","timestamp":"2026-11-24T02:37:07.569Z","sessionId":"S"}`
	block2 = `{"parentUuid":"p","isSidechain":false,"message":{"model":"claude-opus-5-5","id":"msg_1","type":"message","role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":4,"cache_creation_input_tokens":12350,"cache_read_input_tokens":7,"output_tokens":31}},"requestId":"req_1","type":"assistant","uuid":"u2","timestamp":"2026-11-24T02:37:07.570Z","sessionId":"S"}`
	result = `{"parentUuid":"u2","isSidechain":false,"promptId":"P1","type":"user","message":{"role":"user","content":[{"tool_use_id":"t","type":"tool_result","content":"hi"}]},"uuid":"u3","timestamp":"2026-11-24T02:37:07.649Z","sessionId":"S"}`
	fault  = `{"type":"assistant","isApiErrorMessage":true,"message":{"id":"x","model":"<synthetic>","role":"assistant","content":[{"type":"text","text":"API Error"}],"usage":{"input_tokens":0,"output_tokens":0}},"timestamp":"2026-11-24T02:37:08.000Z"}`
	state  = `{"type":"cost-state","sessionId":"S","totalCostUSD":0.0652,"totalAPIDuration":82,"startTime":1795487827094,"modelUsage":{"claude-opus-5-5":{"inputTokens":8,"outputTokens":34,"thinkingTokens":0,"cacheReadInputTokens":12350,"cacheCreationInputTokens":12410,"costUSD":0.065232},"claude-haiku-4-5":{"inputTokens":1,"outputTokens":2,"cacheReadInputTokens":0,"cacheCreationInputTokens":0,"costUSD":0.000001}},"hasUnknownModelCost":%v}`
)

// prompt is a line with what a person or netsky gave it.
func usagePrompt(id, text string) string {
	return fmt.Sprintf(`{"parentUuid":null,"isSidechain":false,"promptId":%q,"type":"user","message":{"role":"user","content":%q},"uuid":"u0","timestamp":"2026-11-24T02:37:07.500Z","sessionId":"S"}`, id, text)
}

// open opens a Reader of the conversation S.
func open(state string) testworld.Reader { return claude.OpenUsage("S", state) }

func TestLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"one answer in two lines", []string{usagePrompt("P1", testworld.Rendered("m-1")), shell, block2, result},
			"msg_1 req_1|claude-opus-5-5|P1|m-1:4+1+7+12350 msg_1 req_1|claude-opus-5-5|P1|m-1:4+31+7+12350"},
		{"typed", []string{usagePrompt("P1", "hello"), block2}, "msg_1 req_1|claude-opus-5-5|P1|:4+31+7+12350"},
		{"typed after a message", []string{usagePrompt("P0", testworld.Rendered("m-1")), usagePrompt("P1", "hello"), block2}, "msg_1 req_1|claude-opus-5-5|P1|:4+31+7+12350"},
		{"two messages in one", []string{usagePrompt("P1", testworld.Rendered("m-1")+"\n"+testworld.Rendered("m-2")), block2}, "msg_1 req_1|claude-opus-5-5|P1|m-1:4+31+7+12350"},
		{"a quoted rendering", []string{usagePrompt("P1", "see: "+testworld.Rendered("m-1")), block2}, "msg_1 req_1|claude-opus-5-5|P1|:4+31+7+12350"},
		{"a tool that is given what a statement looks like", []string{strings.Replace(block2, `"input":{}`, `"input":{"type":"cost-state","modelUsage":{"m":{}}}`, 1)},
			"msg_1 req_1|claude-opus-5-5||:4+31+7+12350"},
		{"a tool that is given what a result looks like", []string{strings.Replace(block2, `"input":{}`, `"input":{"type":"user","x":{"type":"tool_result"}}`, 1)},
			"msg_1 req_1|claude-opus-5-5||:4+31+7+12350"},
		{"a failure", []string{fault}, ""},
		{"a statement", []string{fmt.Sprintf(state, false)}, "claude-haiku-4-5=1+2+0+0=1000,false claude-opus-5-5=8+34+12350+12410=65232000,false"},
		{"a price that Claude Code does not know", []string{fmt.Sprintf(state, true)}, "claude-haiku-4-5=1+2+0+0=0,true claude-opus-5-5=8+34+12350+12410=0,true"},
		{"a fork's first statement", []string{strings.Replace(block2, `"requestId"`, `"requestSessionId":"R","requestId"`, 1), fmt.Sprintf(state, false), block2, fmt.Sprintf(state, false)},
			"msg_1 req_1|claude-opus-5-5||:4+31+7+12350 claude-haiku-4-5=1+2+0+0=1000,false base claude-opus-5-5=8+34+12350+12410=65232000,false base " +
				"msg_1 req_1|claude-opus-5-5||:4+31+7+12350 claude-haiku-4-5=1+2+0+0=1000,false claude-opus-5-5=8+34+12350+12410=65232000,false"},
		{"others", []string{"", "{", `{"type":"mode","mode":"normal"}`, `{"type":"assistant","message":7}`, `{"type":"cost-state","modelUsage":[]}`, `{"type":"assistant","message":{"id":"x"}}`}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			testworld.Check(t, open, tt.want, tt.lines...)
		})
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, f := range []string{"-w/S.jsonl", "-w/S/subagents/agent-1.jsonl", "-w/S/subagents/agent-1.meta.json", "-w/T.jsonl", "-v[1]/S/subagents/x.jsonl"} {
		file := filepath.Join(dir, "projects", f)
		testworld.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		testworld.Must(t, os.WriteFile(file, nil, 0o600))
	}
	env := []string{"HOME=/nowhere", "CLAUDE_CONFIG_DIR=" + dir}
	got := strings.Join(claude.UsageFiles(env, "S"), " ")
	if want := filepath.Join(dir, "projects/-w/S/subagents/agent-1.jsonl") + " " + filepath.Join(dir, "projects/-w/S.jsonl"); got != want {
		t.Errorf("Files = %s, want %s", got, want)
	}
	for _, bad := range []string{"", "../S", "*", "none"} {
		testworld.EqualList(t, claude.UsageFiles(env, bad), nil, "Files(%q)", bad)
	}
}

// Whatever a line says, a Reader goes on from what it keeps, and counts nothing below zero twice.
func FuzzLine(f *testing.F) {
	for _, l := range []string{shell, block2, result, fault, fmt.Sprintf(state, false), usagePrompt("P1", testworld.Rendered("m-1"))} {
		f.Add([]byte(l), "")
	}
	f.Fuzz(func(t *testing.T, line []byte, state string) { testworld.Fuzz(t, open, line, state) })
}
