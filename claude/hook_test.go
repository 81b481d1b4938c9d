package claude_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"netsky/agent"
	"netsky/claude"
	"netsky/internal/testworld"
)

// with is a hook's input: what every event has, and fields of its own.
func with(fields string) string {
	return `{"session_id":"s-1","transcript_path":"/t/s-1.jsonl","cwd":"/w","prompt_id":"p-1"` + fields + `}`
}

func TestHookLine(t *testing.T) {
	t.Parallel()
	common := agent.Event{Session: "s-1", Transcript: "/t/s-1.jsonl"}
	for _, c := range []struct {
		name, event, input string
		want               agent.Event
	}{
		{"start", "SessionStart", `,"source":"startup"`, agent.Event{Event: agent.EventSessionStart, Text: "startup"}},
		{"end", "SessionEnd", `,"reason":"clear"`, agent.Event{Event: agent.EventSessionEnd, Text: "clear"}},
		{"prompt", "UserPromptSubmit", `,"prompt":"do\n this"`, agent.Event{Event: agent.EventPrompt, ID: "p-1", Text: "do this"}},
		{"command", "PreToolUse", `,"tool_name":"Bash","tool_use_id":"t-1","tool_input":{"description":"why","command":"go test ./…\ngo vet"}`,
			agent.Event{Event: agent.EventTool, Tool: "Bash", ID: "t-1", Text: "go test ./… ⏎ go vet"}},
		{"path", "PreToolUse", `,"tool_name":"Edit","tool_use_id":"t-2","tool_input":{"file_path":"/w/a.go","old_string":"x"}`,
			agent.Event{Event: agent.EventTool, Tool: "Edit", ID: "t-2", Text: "/w/a.go"}},
		{"other input", "PreToolUse", `,"tool_name":"mcp__x__y","tool_input":{"n":1}`, agent.Event{Event: agent.EventTool, Tool: "mcp__x__y", Text: `{"n":1}`}},
		{"no input", "PreToolUse", `,"tool_name":"X","tool_input":7`, agent.Event{Event: agent.EventTool, Tool: "X"}},
		{"tool done", "PostToolUse", `,"tool_name":"Bash","tool_use_id":"t-1","tool_input":{"command":"ls"},"tool_response":{"stdout":"secret"}`,
			agent.Event{Event: agent.EventToolDone, Tool: "Bash", ID: "t-1", Text: "ls"}},
		{"tool failed", "PostToolUseFailure", `,"tool_name":"Bash","tool_input":{"command":"ls"},"error":"secret","is_interrupt":false`,
			agent.Event{Event: agent.EventToolDone, Tool: "Bash", Text: "ls", Error: "failed"}},
		{"tool ended", "PostToolUseFailure", `,"tool_name":"Bash","tool_input":{"command":"ls"},"is_interrupt":true`,
			agent.Event{Event: agent.EventToolDone, Tool: "Bash", Text: "ls", Error: "interrupted"}},
		{"permission", "PermissionRequest", `,"tool_name":"Bash","tool_input":{"command":"rm x"}`,
			agent.Event{Event: agent.EventPermission, Tool: "Bash", Text: "rm x"}},
		{"notification", "Notification", `,"message":"Claude needs you","notification_type":"permission_prompt"`,
			agent.Event{Event: agent.EventNotification, Text: "permission_prompt: Claude needs you"}},
		{"stop", "Stop", `,"last_assistant_message":"all\ndone"`, agent.Event{Event: agent.EventStop, ID: "p-1", Text: "all\ndone"}},
		{"failure", "StopFailure", `,"error":"overloaded","last_assistant_message":"API Error"`,
			agent.Event{Event: agent.EventStopFailed, ID: "p-1", Error: "overloaded", Text: "API Error", Fault: &agent.Fault{Reason: agent.Overloaded, Text: "API Error"}}},
		{"bad request", "StopFailure", `,"error":"invalid_request","last_assistant_message":"API Error: 400 no"`,
			agent.Event{Event: agent.EventStopFailed, ID: "p-1", Error: "invalid_request", Text: "API Error: 400 no"}},
		{"too long", "StopFailure", `,"error":"invalid_request","error_details":"400 prompt is too long: 5 > 4","last_assistant_message":"no room"`,
			agent.Event{Event: agent.EventStopFailed, ID: "p-1", Error: "invalid_request", Text: "no room", Usage: &agent.Usage{ContextFull: true},
				Fault: &agent.Fault{Reason: agent.ContextFull, Text: "no room"}}},
		{"fields of other types", "Notification", `,"message":7,"notification_type":{"a":1},"cwd":[1]`, agent.Event{Event: agent.EventNotification, Text: "7"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := testworld.Got(claude.ParseHook(c.event, []byte(with(c.input))))(t)
			c.want.Session, c.want.Transcript, c.want.Input = common.Session, common.Transcript, h.Call
			if got := h.Line(); !reflect.DeepEqual(got, c.want) {
				t.Errorf("Line() = %+v, want %+v", got, c.want)
			}
			if data, _ := json.Marshal(h.Line()); strings.Contains(string(data), "secret") {
				t.Errorf("the line holds what a tool gave: %s", data)
			}
		})
	}
}

func TestHookLeavesNoLine(t *testing.T) {
	t.Parallel()
	for event, fields := range map[string]string{
		"MessageDisplay": "", "SubagentStop": "", "Surprise": `,"new":[1,2]`,
		"Stop": `,"agent_id":"a-1"`, "StopFailure": `,"agent_id":"a-1","error":"rate_limit"`,
	} {
		h, err := claude.ParseHook(event, []byte(with(fields)))
		testworld.Equal(t, err, nil, "ParseHook(%s)", event)
		if got := h.Line(); !reflect.DeepEqual(got, agent.Event{}) {
			t.Errorf("the line of %s %s = %+v, want none", event, fields, got)
		}
	}
}

func TestParseHookRefuses(t *testing.T) {
	t.Parallel()
	for _, input := range []string{"", "{", "null", "[]", `"x"`, `{"prompt":"x"} {}`, "\x00"} {
		if h, err := claude.ParseHook("Stop", []byte(input)); err == nil {
			t.Errorf("ParseHook(%q) = %+v, want an error", input, h)
		}
	}
	if h, err := claude.ParseHook("", []byte(`{"hook_event_name":"Stop"}`)); err != nil || h.Event != "Stop" {
		t.Errorf("ParseHook without a name = %+v, %v", h, err)
	}
}

// However long and odd a text is, its line can be appended and read.
func TestHookLineFits(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"long": strings.Repeat("x", 600<<10), "escapes": strings.Repeat("<", 300<<10), "controls": strings.Repeat("\x01", 300<<10), "wide": strings.Repeat("€", 200<<10),
	} {
		quoted := testworld.Got(json.Marshal(text))(t)
		for event, field := range map[string]string{"Stop": "last_assistant_message", "UserPromptSubmit": "prompt", "PreToolUse": "tool_name", "Notification": "message"} {
			h := testworld.Got(claude.ParseHook(event, []byte(`{"`+field+`":`+string(quoted)+`}`)))(t)
			e := h.Line()
			data, err := json.Marshal(e)
			if err != nil || len(data) >= 1<<20 || e.Text+e.Tool == "" || !utf8.ValidString(e.Text) {
				t.Errorf("%s of %s: a line of %d bytes (%v), text of %d", event, name, len(data), err, len(e.Text))
			}
		}
	}
}

func FuzzParseHook(f *testing.F) {
	f.Add("Stop", with(`,"last_assistant_message":"x"`))
	f.Add("PermissionRequest", with(`,"tool_name":"Bash","tool_input":{"command":"rm x","description":"y"}`))
	f.Add("", `{"hook_event_name":7,"tool_input":[{}],"error":{}}`)
	f.Add("StopFailure", "{\"error\":\"\xff\"}")
	f.Fuzz(func(t *testing.T, event, input string) {
		h, err := claude.ParseHook(event, []byte(input))
		if err != nil {
			return
		}
		h.Transcript = "" // whatever file that may be
		e := h.Line()
		data, err := json.Marshal(e)
		if err != nil || len(data) >= 1<<20 {
			t.Fatalf("the line of %q has %d bytes: %v", input, len(data), err)
		}
		if e.Event != agent.EventStop && e.Event != agent.EventStopFailed && strings.ContainsAny(e.Text, "\n\r\x1b") {
			t.Errorf("the line's text %q has several lines", e.Text)
		}
		if p, ok := h.Permission(); ok && p.Tool == "" {
			t.Errorf("Permission() = %+v", p)
		}
	})
}

func TestDecision(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		allow bool
		want  string
	}{
		{true, `{"hookSpecificOutput":{"decision":{"behavior":"allow"},"hookEventName":"PermissionRequest"}}`},
		{false, `{"hookSpecificOutput":{"decision":{"behavior":"deny","message":"not \"now\""},"hookEventName":"PermissionRequest"}}`},
	} {
		if got := string(claude.Decision(c.allow, `not "now"`)); got != c.want+"\n" {
			t.Errorf("Decision(%v) = %s, want %s", c.allow, got, c.want)
		}
	}
}

// Lines of a conversation's file, as Claude Code writes them.
func said(id, text string, output int) string {
	return `{"type":"assistant","message":{"id":"` + id + `","type":"message","content":[{"type":"text","text":"` + text +
		`"}],"usage":{"input_tokens":10,"cache_read_input_tokens":100,"cache_creation_input_tokens":5,"output_tokens":` + string(rune('0'+output)) + `}}}`
}

func prompted(number, text string) string {
	return `{"type":"user","promptId":"` + number + `","message":{"role":"user","content":"` + text + `"}}`
}

const (
	toolGave = `{"type":"user","promptId":"p-2","message":{"role":"user","content":[{"tool_use_id":"t","type":"tool_result","content":"out"}]}}`
	peerSent = `{"type":"user","isMeta":true,"origin":{"kind":"peer"},"promptId":"p-2","message":{"role":"user","content":"Another Claude session sent"}}`
	ownNote  = `{"type":"user","isMeta":true,"promptId":"p-9","message":{"role":"user","content":"a note"}}`
	command  = `{"type":"user","promptId":"p-9","message":{"role":"user","content":"<command-name>/model</command-name>"}}`
	side     = `{"type":"assistant","isSidechain":true,"message":{"id":"m-side","content":[{"type":"text","text":"aside"}],"usage":{"output_tokens":9}}}`
	failed   = `{"type":"assistant","isApiErrorMessage":true,"message":{"id":"m-err","content":[{"type":"text","text":"API Error"}],"usage":{"output_tokens":0}}}`
)

func mustTranscript(tb testing.TB, lines ...string) string {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "t.jsonl")
	testworld.Must(tb, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return file
}

func TestReadTurn(t *testing.T) {
	t.Parallel()
	filler := `{"type":"attachment","attachment":{"type":"x","text":"` + strings.Repeat("y", 700<<10) + `"}}`
	for _, c := range []struct {
		name   string
		number string
		lines  []string
		text   string
		want   agent.Usage
	}{
		{"one request", "p-1", []string{prompted("p-1", "hi"), said("m-1", "yes", 7)}, "yes",
			agent.Usage{Input: 10, CacheRead: 100, CacheWrite: 5, Output: 7, Requests: 1, ContextNow: 122}},
		{"blocks of one message", "p-1", []string{prompted("p-1", "hi"), said("m-1", "a", 1), said("m-1", "b", 7)}, "b",
			agent.Usage{Input: 10, CacheRead: 100, CacheWrite: 5, Output: 7, Requests: 1, ContextNow: 122}},
		{"the turn before is another's", "p-2", []string{prompted("p-1", "hi"), said("m-1", "a", 9), peerSent, said("m-2", "b", 2), toolGave, filler, said("m-3", "c", 3)}, "c",
			agent.Usage{Input: 20, CacheRead: 200, CacheWrite: 10, Output: 5, Requests: 2, ContextNow: 118}},
		{"without a number", "", []string{prompted("p-1", "hi"), said("m-1", "a", 9), prompted("p-2", "x"), said("m-2", "b", 2)}, "b",
			agent.Usage{Input: 10, CacheRead: 100, CacheWrite: 5, Output: 2, Requests: 1, ContextNow: 117}},
		{"prompts taken together", "p-1", []string{prompted("p-0", "x"), said("m-0", "z", 9), prompted("p-1", "hi"), prompted("p-2", "ho"), said("m-1", "a", 2)}, "a",
			agent.Usage{Input: 10, CacheRead: 100, CacheWrite: 5, Output: 2, Requests: 1, ContextNow: 117}},
		{"a prompt in the middle", "p-1", []string{prompted("p-0", "x"), said("m-0", "z", 9), prompted("p-1", "hi"), said("m-1", "a", 2), prompted("p-1", "ho"), said("m-2", "b", 3)}, "b",
			agent.Usage{Input: 20, CacheRead: 200, CacheWrite: 10, Output: 5, Requests: 2, ContextNow: 118}},
		{"notes and commands are no prompts", "p-1", []string{prompted("p-1", "hi"), said("m-1", "a", 1), ownNote, command, side, failed, "{broken", `{"type":"user"}`[:9], said("m-2", "b", 2)}, "b",
			agent.Usage{Input: 20, CacheRead: 200, CacheWrite: 10, Output: 3, Requests: 2, ContextNow: 117}},
		{"nothing said yet", "p-2", []string{prompted("p-1", "hi"), said("m-1", "a", 1), peerSent}, "", agent.Usage{}},
		{"empty", "p-1", nil, "", agent.Usage{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := claude.ReadTurn(mustTranscript(t, c.lines...), c.number)
			if err != nil || got.Text != c.text || got.Usage != c.want {
				t.Errorf("ReadTurn = %+v, %v, want %q %+v", got, err, c.text, c.want)
			}
		})
	}
	testworld.Fails(t, testworld.Err(claude.ReadTurn(filepath.Join(t.TempDir(), "none"), "")), "", "ReadTurn of no file = nil")
	testworld.Fails(t, testworld.Err(claude.ReadTurn(t.TempDir(), "")), "", "ReadTurn of a directory = nil")
}

// The text of a stop comes from the file if Claude Code did not tell it.
func TestStopWithoutText(t *testing.T) {
	t.Parallel()
	file := mustTranscript(t, prompted("p-1", "hi"), said("m-1", "from the file", 7))
	h := claude.Hook{Event: "Stop", Transcript: file, Turn: "p-1"}
	if e := h.Line(); e.Text != "from the file" || e.Usage != nil {
		t.Errorf("Line() = %+v, want the file's text and no usage yet", e)
	}
	h.LastText = "from the file"
	if e := h.Line(); e.Usage == nil || e.Usage.Output != 7 {
		t.Errorf("Line() = %+v, want the usage", e)
	}
	h.LastText = "what the file does not hold yet"
	if e := h.Line(); e.Usage != nil {
		t.Errorf("Line() = %+v, want no usage", e)
	}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	const rendered = `<channel source=\"agent\" chat_id=\"agent0\" id=\"ID\">\nhi\n</channel>`
	in := func(kind, id string) string {
		return `{"type":"` + kind + `","content":"` + strings.ReplaceAll(rendered, "ID", id) + `"}`
	}
	filler := `{"type":"x","text":"` + strings.Repeat("y", 600<<10) + `"}`
	file := mustTranscript(t, in("user", "a"), filler, in("queue-operation", "b"), in("api-request-blob", "b"), filler, in("attachment", "c"))
	for id, want := range map[string]bool{"a": true, "b": false, "c": true, "d": false, "": false, "a\\\">": false} {
		testworld.Equal(t, claude.Holds(file, id), want, "Holds(%q)", id)
	}
	if claude.Holds("", "a") || claude.Holds("/nowhere", "a") {
		t.Error("Holds of no file = true")
	}
}

// TestUsageOfFirstTurn: Claude Code makes a conversation's file a moment after the hooks of
// the first turn have run.
func TestUsageOfFirstTurn(t *testing.T) {
	t.Parallel()
	lines := prompted("p-1", "hi") + "\n" + said("m-1", "yes", 7) + "\n"
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		stop := agent.Event{Event: agent.EventStop, ID: "p-1", Text: "yes", Transcript: filepath.Join(dir, "late.jsonl")}
		go func() {
			time.Sleep(time.Second)
			if err := os.WriteFile(stop.Transcript, []byte(lines), 0o600); err != nil {
				t.Error(err)
			}
		}()
		var s claude.Session
		if u := s.Usage(t.Context(), stop); u.Requests != 1 || u.Output != 7 {
			t.Errorf("Usage = %+v, want that of one request", u)
		}
		began := time.Now()
		s.Usage(t.Context(), agent.Event{Event: agent.EventStop, Text: "yes"})
		if took := time.Since(began); took > 0 {
			t.Errorf("without a file Usage took %v", took)
		}
	})
}

func BenchmarkReadTurn(b *testing.B) {
	filler := `{"type":"attachment","text":"` + strings.Repeat("y", 100<<10) + `"}`
	lines := []string{}
	for range 1000 {
		lines = append(lines, filler)
	}
	file := mustTranscript(b, append(lines, prompted("p-0", "x"), said("m-0", "z", 1), prompted("p-1", "hi"), filler, said("m-1", "yes", 7))...)
	for b.Loop() {
		if turn, err := claude.ReadTurn(file, "p-1"); err != nil || turn.Text != "yes" {
			b.Fatal(turn, err)
		}
	}
}
