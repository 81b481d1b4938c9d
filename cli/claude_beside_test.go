//go:build live

package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"netsky/internal/loopmodel"
	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/testworld"
)

// What Claude Code does outside of the agent's worktree is said: in a worktree that it has made itself, and in the
// owner's directory; and so is a conversation that it does not continue.
func TestClaudeBeside(t *testing.T) {
	t.Parallel()
	w, model := mustClaude(t)
	w.config(t, freely)
	dir := filepath.Join(w.dir, "src")
	r := testworld.NewRepo(t, dir)
	r.Commit("one", "a", "1\n")
	model.Handle(func(q anthropic.Request) *anthropic.Reply {
		call := func(name string, args map[string]any) *anthropic.Reply {
			return &anthropic.Reply{Calls: []loopmodel.Call{{Name: name, Arguments: args}}}
		}
		switch last := q.Last(); {
		case !strings.Contains(last, "stray now") && len(q.Outputs) == 0:
			return nil
		case len(q.Outputs) == 0:
			return call("Write", map[string]any{"file_path": filepath.Join(dir, "new"), "content": "x\n"})
		case strings.Contains(strings.Join(q.Outputs, "\n"), "in beside"):
			return &anthropic.Reply{Text: "strayed"}
		case strings.Contains(strings.Join(q.Outputs, "\n"), ".claude/worktrees"):
			return call("Bash", map[string]any{"command": "echo 1 > in-there && echo in beside"})
		default:
			return call("EnterWorktree", map[string]any{"name": "side"})
		}
	})
	w.up1(t)
	if got := w.mustAsk(t, "stray now"); !strings.Contains(got, "strayed") {
		t.Fatalf("%q", got)
	}
	for _, args := range [][]string{{"work"}, {"diff", "1"}} {
		if out := w.must(t, "netsky", args...); !strings.Contains(out, "1 file not committed in ") || !strings.Contains(out, "/.claude/worktrees/side") || !strings.Contains(out, "changed in "+dir+": new") {
			t.Errorf("%q: %s", args, out)
		}
	}
	w.must(t, "netsky", "down", "agent1", "--force")
	testworld.Contains(t, w.up1(t, "--here"), "agent1 begins a new conversation: its last, ", "here")
}
