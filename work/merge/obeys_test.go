//go:build live

package merge_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/internal/testworld"
	"netsky/work/diff"
	"netsky/work/git"
	"netsky/work/land"
	"netsky/work/merge"
	"netsky/work/tree"
)

// Whoever works in a worktree can write a configuration there, of a submodule or of a repository that
// takes the place of theirs, and hooks. No git of netsky's obeys it.
func TestObeysNobodyInThere(t *testing.T) {
	t.Parallel()
	f := newField(t)
	sub := f.At(filepath.Join(filepath.Dir(f.Dir), "sub"))
	f.Git("init", "-q", "-b", "main", sub.Dir)
	sub.Git("config", "user.name", "Ada")
	sub.Git("config", "user.email", "ada@example.org")
	sub.Commit("sub", "x", "1\n")
	f.Git("-c", "protocol.file.allow=always", "submodule", "add", "-q", sub.Dir, "sub")
	f.Commit("with a submodule")
	f.Git("config", "core.hooksPath", ".hooks")
	mark := filepath.Join(filepath.Dir(f.Dir), "obeyed")
	script := "#!/bin/sh\necho \"$0 $*\" >>'" + mark + "'\ncat\n"
	at := f.agent("agent1")
	evil := func(dir string) {
		r := f.At(dir)
		r.Git("config", "user.name", "Eve")
		r.Git("config", "user.email", "eve@example.org")
		r.Commit("x", "x", "1\n")
		r.Git("config", "filter.x.clean", "sh -c 'echo "+filepath.Base(dir)+" >>"+mark+"; cat'")
		r.Write(".gitattributes", "* filter=x\n", "x", "2\n", "new", "3\n")
	}
	f.At(filepath.Join(at.Dir, "sub")).Git("init", "-q", "-b", "main")
	evil(filepath.Join(at.Dir, "sub"))
	for _, hook := range []string{"post-checkout", "post-merge", "post-index-change", "reference-transaction", "pre-commit"} {
		at.Write(".hooks/"+hook, script)
		testworld.Must(t, os.Chmod(filepath.Join(at.Dir, ".hooks", hook), 0o700))
	}
	w := testworld.Got(tree.Load(f.home, "agent1"))(t)
	look := func() {
		t.Helper()
		fc := merge.New(f.home)
		if _, err := fc.Look(t.Context()); err != nil {
			t.Error(err)
		}
		if err := fc.Close(); err != nil {
			t.Error(err)
		}
		_, _ = land.LooseIn(t.Context(), w) // refused once it is replaced
		if c, err := diff.Open(t.Context(), f.home, w); err == nil {
			_, _, _ = c.Files(t.Context())
			c.Close()
		}
		r := testworld.Got(git.Open(t.Context(), f.Dir, ""))(t)
		_, _ = tree.Make(t.Context(), f.home, "agent1", r, true)
		if text, err := os.ReadFile(mark); err == nil {
			t.Errorf("git has run %s", strings.TrimSpace(string(text)))
		}
	}
	look()
	f.Commit("main goes on", "m", "m")
	look()
	testworld.Must(t, os.Remove(filepath.Join(at.Dir, ".git")))
	at.Git("init", "-q", "-b", "netsky/agent1")
	evil(at.Dir)
	look()
}
