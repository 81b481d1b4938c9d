//go:build live

package codex_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/internal/execx"
	"netsky/internal/testworld"
)

// The agent's Codex has what its user has set, logins of other programs included,
// which its model hands on when it starts other agents; not what another agent, a
// terminal or another Claude Code has said of itself.
func TestChildEnvironment(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	seen := filepath.Join(w.dir, "seen")
	w.program = filepath.Join(w.dir, "codex")
	testworld.Must(t, os.WriteFile(w.program, []byte("#!/bin/sh\n[ $1 = --version ] || env >"+seen+"\nexit 1\n"), 0o700))
	kept := []string{"MINE=1", "CLAUDE_CODE_OAUTH_TOKEN=k", "CLAUDE_CODE_USE_BEDROCK=1", "CODEX_HOME=/x", "NETSKY_START=s", "TERM_PROGRAM=tmux"}
	gone := []string{"TMUX=/t", "TMUX_PANE=%1", "STY=1", "CLAUDECODE=1", "CLAUDE_CODE_SESSION_ID=s", "CLAUDE_PROJECT_DIR=/p", "CODEX_THREAD_ID=t", "AGENT_CODEX_MODEL=m", "NETSKY_PROMPT_FILE=/p", "AGENT_N=9"}
	w.env = append(append(w.env, kept...), gone...)
	testworld.Fails(t, w.once(prompting("hi")), "", "Once with a Codex that ends at once: no error")
	data := testworld.Got(os.ReadFile(seen))(t)
	env := strings.Split(string(data), "\n")
	for _, v := range append(kept, "AGENT_N=1", "NETSKY_HOME="+w.home.Root()) {
		if name, value, _ := strings.Cut(v, "="); execx.Value(env, name) != value {
			t.Errorf("%s=%q, want %q", name, execx.Value(env, name), value)
		}
	}
	for _, v := range gone[:len(gone)-1] {
		if name, _, _ := strings.Cut(v, "="); execx.Value(env, name) != "" {
			t.Errorf("%s is handed on", name)
		}
	}
}
