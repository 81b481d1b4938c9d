//go:build live

package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"netsky/internal/testworld"
)

// With commit_and_check, a commit of an agent's in its own worktree needs no question, on either program, and a
// command that is more than that does.
func TestCommitUnasked(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"claude", "codex"} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			w := mustWorld(t)
			if program == "claude" {
				w.addClaude(t)
				w.config(t, "[claude]\npermission_mode = \"acceptEdits\"\ncommit_and_check = \"allow\"\n")
			} else {
				w.addCodex(t)
				w.config(t, "[codex]\nsandbox = \"workspace-write\"\napproval = \"on-request\"\ncommit_and_check = \"allow\"\n")
			}
			shell := map[string]string{"claude": "loop: shell ", "codex": "loop: ask "}[program] // asks to leave the sandbox
			r := testworld.NewRepo(t, filepath.Join(w.dir, "src"))
			r.Commit("one", "a", "1\n")
			w.mustUp(t, "agent", "1", "--type", program, "--dir", r.Dir)
			at := r.At(filepath.Join(w.home, "workspaces", "agent1"))
			at.Write("b c", "2\n")
			w.mustAsk(t, shell+"git add 'b c'")
			w.mustAsk(t, shell+`git commit -m "it's b"`)
			if got := at.Git("log", "-1", "--format=%s") + at.Git("status", "--porcelain"); got != "it's b" {
				t.Errorf("committed: %q\n%s", got, w.must(t, "netsky", "log"))
			}
			for _, want := range []string{"allowed by commit_and_check in netsky.toml: ", "git add 'b c'"} {
				testworld.Wait(t, want, func() bool { return strings.Contains(w.must(t, "netsky", "log"), want) })
			}
			more := "git commit --allow-empty -m x"
			id := w.mustSend(t, "agent1", shell+more)
			code := w.mustApproval(t, more)
			w.must(t, "netsky", "approve", code, "--deny")
			w.mustAnswer(t, id)
			testworld.Equal(t, at.Git("log", "-1", "--format=%s"), "it's b", "committed after all")
		})
	}
}
