package plan_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/claude"
	"netsky/fleet/plan"
	"netsky/internal/testworld"
)

// A conversation that its runtime can't continue any more is known before anything is
// ended; one that has not begun is none.
func TestConversation(t *testing.T) {
	t.Parallel()
	const id = "0f8fad5b-d9cb-469f-a165-70867728950e"
	file := filepath.Join(t.TempDir(), "c.jsonl")
	testworld.Must(t, os.WriteFile(file, []byte("{}\n"), 0o600))
	for _, tt := range []struct {
		name, runtime string
		claude        claude.State
		codex         string
		want, err     string
	}{
		{name: "never started"},
		{name: "a demo", runtime: "demo"},
		{name: "claude, unused", runtime: "claude", claude: claude.State{Session: id}},
		{name: "claude", runtime: "claude", claude: claude.State{Session: id, Transcript: file, Used: true}, want: id},
		{name: "claude, its file gone", runtime: "claude", claude: claude.State{Session: id, Transcript: file + "x", Used: true}, err: "its conversation " + id + " can't be continued"},
		{name: "codex", runtime: "codex", codex: `{"thread_id":"t-1","started":true}`, want: "t-1"},
		{name: "codex, unused", runtime: "codex", codex: `{"thread_id":"t-1"}`},
		{name: "codex, damaged", runtime: "codex", codex: `{`, err: "unexpected end of JSON input"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := testworld.FastHome(t)
			if tt.runtime != "" {
				testworld.Must(t, h.SaveLaunch(agent.Launch{Agent: "agent1", Start: "s", Runtime: tt.runtime}))
			}
			if tt.claude.Session != "" {
				testworld.Must(t, claude.SaveState(h, "agent1", tt.claude))
			}
			if tt.codex != "" {
				testworld.Must(t, h.WriteFile("state/codex/agent1.json", []byte(tt.codex), false))
			}
			got, err := plan.Conversation(h, "agent1")
			if got != tt.want && err == nil || tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}
