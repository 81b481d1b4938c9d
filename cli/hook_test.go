package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/testworld"
)

// Whatever is wrong, a hook lets Claude Code go on: exit status 0, nothing on
// stdout that would be taken for a decision, and soon. Standard output counts:
// what UserPromptSubmit prints there, the model is told.
func TestHookNeverBlocks(t *testing.T) {
	t.Parallel()
	prompt := `{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt":"hello"}`
	ours := func(id string) string {
		text := envelope.Render(envelope.Envelope{ID: id, From: agent.Root, To: "agent1", Text: "do it", Time: time.Unix(0, 0)}, time.Unix(0, 0))
		data := testworld.Got(json.Marshal(map[string]string{"session_id": "s", "prompt": text}))(t)
		return string(data)
	}
	for _, c := range []struct {
		name  string
		event string
		stdin string
		env   []string
		spoil func(t *testing.T, w *world)
	}{
		{name: "nothing wrong", event: "UserPromptSubmit", stdin: prompt},
		{name: "a message of ours", event: "UserPromptSubmit", stdin: ours("m-1")},
		{name: "no event", stdin: prompt},
		{name: "an event nobody knows", event: "MoonRise", stdin: `{"hook_event_name":"MoonRise"}`},
		{name: "nothing on stdin", event: "Stop"},
		{name: "garbage", event: "Stop", stdin: "\x00\xff{{{"},
		{name: "JSON of another kind", event: "Stop", stdin: "[1,2]"},
		{name: "other types", event: "PreToolUse", stdin: `{"session_id":7,"tool_name":["x"],"tool_input":"y","tool_use_id":null}`},
		{name: "huge", event: "UserPromptSubmit", stdin: `{"prompt":"` + strings.Repeat("x", 70<<20) + `"}`},
		{name: "a transcript that is none", event: "Stop", stdin: `{"session_id":"s","transcript_path":"/dev/zero","last_assistant_message":"x"}`},
		{name: "no agent", event: "Stop", stdin: prompt, env: []string{"AGENT_N="}},
		{name: "an agent that is none", event: "Stop", stdin: prompt, env: []string{"AGENT_N=../x"}},
		{name: "no home", event: "Stop", stdin: prompt, env: []string{"NETSKY_HOME=", "HOME="}},
		{name: "a home that is a file", event: "UserPromptSubmit", stdin: ours("m-2"), env: []string{"NETSKY_HOME=/dev/null"}},
		{name: "no start", event: "SessionStart", stdin: `{"session_id":"s","source":"startup"}`, env: []string{"NETSKY_START="}},
		{name: "a broken configuration", event: "UserPromptSubmit", stdin: ours("m-3"), spoil: func(t *testing.T, w *world) {
			w.config(t, "[claude\nwhat = ")
		}},
		{name: "events that can't be written", event: "UserPromptSubmit", stdin: ours("m-4"), spoil: func(t *testing.T, w *world) {
			mustMkdir(t, filepath.Join(w.home, "state", "events", "agent1.jsonl"))
		}},
		{name: "a state that is damaged", event: "SessionStart", stdin: `{"session_id":"s"}`, spoil: func(t *testing.T, w *world) {
			mustMkdir(t, filepath.Join(w.home, "state", "claude", "agent1.json"))
		}},
		{name: "a question that can't be put", event: "PermissionRequest", stdin: `{"session_id":"s","tool_name":"Bash","tool_input":{"command":"x"}}`,
			spoil: func(t *testing.T, w *world) {
				mustMkdir(t, filepath.Join(w.home, "state", "approvals", "x"))
				mustFile(t, filepath.Join(w.home, "state", "keepers"))
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := mustWorld(t)
			if c.spoil != nil {
				mustMkdir(t, w.home)
				marker := filepath.Join(w.home, home.MarkerFile) // else what is spoiled is no home
				testworld.Must(t, os.WriteFile(marker, []byte(`{"netsky_home":1,"made":true}`), 0o600))
				c.spoil(t, w)
			}
			cmd := w.command(t.Context(), "netsky", "hook")
			if c.event != "" {
				cmd.Args = append(cmd.Args, c.event)
			}
			cmd.Env = append(append(cmd.Env, "AGENT_N=1", "NETSKY_START=s1"), c.env...)
			var out, errs bytes.Buffer
			cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(c.stdin), &out, &errs
			if err := cmd.Run(); err != nil {
				t.Errorf("%v\n%s", err, errs.String())
			}
			if out.Len() > 0 {
				t.Errorf("it printed %q", out.String())
			}
		})
	}
}

// The one thing that a hook blocks is a prompt of nothing but messages that the
// model has been given before.
func TestHookBlocksWhatComesTwice(t *testing.T) {
	t.Parallel()
	w, run := drained(t)
	given := strings.SplitAfter(run("channel", "drain", "agent1"), "</channel>\n")
	if len(given) != 4 {
		t.Fatalf("the drain printed %q", given)
	}
	one, two := given[0], strings.TrimSpace(given[1])
	fresh := envelope.Render(envelope.Envelope{ID: "m-3", From: agent.Root, To: "agent1", Text: "do it", Time: time.Unix(0, 0)}, time.Unix(0, 0))
	for i, c := range []struct {
		prompt string
		status int
	}{
		{one, 2},
		{one + two, 2},
		{one + fresh, 0},
		{fresh, 0},
		{"look at this:\n" + one, 0},
		{one + "and do it again", 0},
		{"hello", 0},
		{"hello", 0},
	} {
		data := testworld.Got(json.Marshal(map[string]string{"session_id": "s", "prompt": c.prompt}))(t)
		status, out := w.within(t, []string{"AGENT_N=1", "NETSKY_START=s1"}, string(data), "netsky", "hook", "UserPromptSubmit")
		if status != c.status {
			t.Errorf("prompt %d: exit status %d, want %d\n%s", i, status, c.status, out)
		}
	}
}

// What is started by hand says what it is for.
func TestHookAndServerByHand(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	for _, c := range []struct {
		env  string
		args []string
		want string
	}{
		{"AGENT_N=", []string{"io"}, "needs one of: serve"},
		{"AGENT_N=", []string{"io", "serve"}, "AGENT_N is not set"},
		{"AGENT_N=x", []string{"io", "serve"}, `AGENT_N: "x" is not an agent`},
		{"AGENT_N=1", []string{"io", "serve", "-s", "fax"}, `-s "fax": must be agent`},
		{"AGENT_N=1", []string{"io", "serve", "agent"}, "takes no arguments"},
	} {
		status, out := w.within(t, []string{c.env}, "", "netsky", c.args...)
		if status != 2 || !strings.Contains(out, c.want) {
			t.Errorf("%s netsky %v: exit status %d, %q, want 2 and %q", c.env, c.args, status, out, c.want)
		}
	}
	// The server ends with its input, whatever that was.
	for _, in := range []string{"", "\n", "{{{\n", `{"jsonrpc":"2.0"}` + "\n", strings.Repeat("x", 1<<20)} {
		if status, out := w.within(t, []string{"AGENT_N=1"}, in, "netsky", "io", "serve"); status != 0 && status != 1 || strings.Contains(out, "goroutine ") {
			t.Errorf("io serve of %.20q: exit status %d\n%s", in, status, out)
		}
	}
}

func mustMkdir(t testing.TB, dir string) {
	t.Helper()
	testworld.Must(t, os.MkdirAll(dir, 0o700))
}

func mustFile(t testing.TB, file string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = os.WriteFile(file, fmt.Appendln(nil, "x"), 0o600)
	}
	testworld.Must(t, err)
}

// netsky's own tools need nobody's yes, in whatever mode Claude Code runs.
func TestHookAllowsOurTools(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"mcp__agent__send", "mcp__imessage__reply", "mcp__imessage__send_file"} {
		w := mustWorld(t)
		w.must(t, "netsky", "init")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := w.command(ctx, "netsky", "hook", "PermissionRequest")
		cmd.Env = append(cmd.Env, "AGENT_N=0", "NETSKY_START=s1")
		cmd.Stdin = strings.NewReader(`{"session_id":"s","tool_name":"` + tool + `","tool_input":{}}`)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), `"behavior":"allow"`) {
			t.Errorf("%s: %v: %s", tool, err, out)
		}
	}
}
