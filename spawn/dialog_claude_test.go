//go:build live

package spawn_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/claude"
	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/testworld"
	"netsky/spawn"
)

// A realClaude runs Claude Code itself, which says that it is ready by a hook:
// hooks run when no dialog is left.
type realClaude struct {
	*claude.Runtime
	program, mode string
}

func (realClaude) Check(context.Context, agent.Launch) error { return nil }

func (c realClaude) Prepare(_ context.Context, l *agent.Launch) error {
	hook := map[string]any{"hooks": []any{map[string]any{"type": "command", "command": ready}}}
	settings, err := json.Marshal(map[string]any{"hooks": map[string]any{"SessionStart": []any{hook}}})
	l.Argv = []string{c.program, "--permission-mode", c.mode, "--name", string(l.Agent), "--strict-mcp-config", "--settings", string(settings)}
	return err
}

// claudeWorld is a world with a Claude Code whose own home lacks the seeds in
// out, and trusts the agents' directory if trusted.
func claudeWorld(t *testing.T, out anthropic.Seed, trusted bool) (*world, *anthropic.Server, string) {
	t.Helper()
	program := os.Getenv("NETSKY_TEST_CLAUDE")
	if program == "" {
		const words = "NETSKY_TEST_CLAUDE is not set: scripts/test installs Claude Code and sets it"
		if os.Getenv("CI") != "" {
			t.Fatal(words)
		}
		t.Skip(words)
	}
	model := testworld.Got(anthropic.Start())(t)
	t.Cleanup(func() { model.Close() })
	config := t.TempDir()
	w := newWorld(t, append(model.Env(config), anthropic.Sandbox)...)
	w.readyWithin = time.Minute // the machine may have much to do
	var dirs []string
	if trusted {
		dirs = []string{w.work()}
	}
	testworld.Must(t, anthropic.WriteHomeWithout(config, out, dirs...))
	return w, model, program
}

func TestClaudeDialogs(t *testing.T) {
	t.Parallel()
	const hooks = `{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"true"}]}]}}`
	for _, tt := range []struct {
		name, mode string
		out        anthropic.Seed
		trusted    bool
		settings   string // of the agents' directory
		waits      string // "": all is answered
	}{
		{name: "trust", mode: "manual"},
		{name: "bypass", mode: "bypassPermissions", trusted: true},
		{name: "trust and bypass", mode: "bypassPermissions"},
		{name: "API key", mode: "manual", out: anthropic.APIKey, trusted: true, waits: "custom API key: Detected a custom API key in your environment"},
		{name: "trust of a directory whose settings run commands", mode: "manual", settings: hooks, waits: "workspace trust: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, model, program := claudeWorld(t, tt.out, tt.trusted)
			if tt.settings != "" {
				dir := filepath.Join(w.work(), ".claude")
				testworld.Must(t, os.Mkdir(dir, 0o700))
				testworld.Must(t, os.WriteFile(filepath.Join(dir, "settings.json"), []byte(tt.settings), 0o600))
			}
			r := realClaude{&claude.Runtime{}, program, tt.mode}
			p := w.up(r, "agent1")[0]
			want := agent.Idle
			if tt.waits != "" {
				want = agent.Waiting
			}
			if p.Step != spawn.StepReady || p.State != want || !strings.HasPrefix(p.Note, tt.waits) {
				t.Fatalf("up: %s %s %q %v %s\n%s", p.Step, p.State, p.Note, p.Err, strings.Join(p.Lines, "\n"), w.tmux("capture-pane", "-p", "-t", "=agent1:"))
			}
			if tt.waits == "" {
				w.emptyComposer()
			}
			testworld.Equal(t, len(model.Requests()), 0, "requests to the model")
		})
	}
}

// emptyComposer waits for the prompt and wants nothing typed into it.
func (w *world) emptyComposer() {
	w.Helper()
	var screen string
	testworld.WaitOr(w, func() bool {
		screen = w.tmux("capture-pane", "-p", "-t", "=agent1:")
		_, dialog := claude.Recognise(screen)
		return !dialog && (strings.Contains(screen, "mode on") || strings.Contains(screen, "bypass permissions on"))
	}, func() string { return "no prompt:\n" + screen })
	for line := range strings.Lines(screen) {
		if rest, ok := strings.CutPrefix(line, "❯"); ok && strings.Trim(rest, " \u00a0\n") != "" {
			w.Errorf("the prompt holds %q", rest)
		}
	}
}
