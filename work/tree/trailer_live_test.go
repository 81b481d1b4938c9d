//go:build live

package tree_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"netsky/internal/testworld"
)

// One stash is shared by all worktrees, so an agent in one can't put anything in it, and keeps what it has.
func TestStash(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "agent3")
	w.script(".git/hooks/reference-transaction", `cat >> "$(git rev-parse --git-common-dir)/refs-moved"`)
	w.prepare("agent3")
	tree := w.At(filepath.Join(t.TempDir(), "tree"))
	w.Git("worktree", "add", "-q", "-b", "netsky/agent3", tree.Dir)
	tree.Write("a.txt", "mine\n")
	for _, args := range [][]string{{"stash"}, {"stash", "push", "-m", "x"}} {
		if out, err := w.git(append([]string{"-C", tree.Dir}, args...)...); err == nil || !strings.Contains(out, "git commit -am wip") {
			t.Errorf("git %q: %v, %s", args, err, out)
		}
	}
	if got := w.Git("stash", "list"); got != "" || tree.Read("a.txt") != "mine\n" {
		t.Errorf("stashed: %s", got)
	}
	w.must("-C", tree.Dir, "commit", "-q", "-am", "wip")
	testworld.Contains(t, w.Read(".git/refs-moved"), "refs/heads/netsky/agent3", "the repository's own hook was given")
	w.Write("a.txt", "the owner's\n") // where only one works
	w.must("stash")
}

// What a program such as lefthook installs in the agent's directory of hooks runs, and takes no name from commits.
func TestInstalled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "agent3")
	// As lefthook does it: the hook that is there becomes NAME.old.
	const install = `dir=$(git rev-parse --path-format=absolute --git-path hooks)
for name in pre-commit prepare-commit-msg; do
	[ ! -e "$dir/$name.old" ] || exit 1
	[ ! -e "$dir/$name" ] || mv "$dir/$name" "$dir/$name.old"
	printf '#!/bin/sh\n\necho ran %s >> "$(git rev-parse --git-dir)/ran"\n' $name > "$dir/$name"
	chmod 755 "$dir/$name"
done
`
	for n, again := range []func(){func() {}, func() { w.prepare("agent3") }} {
		cmd := exec.Command("sh", "-c", install)
		cmd.Dir, cmd.Env = w.Dir, w.env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		again()
		w.Write("x", strings.Repeat("x", n+1), ".git/ran", "")
		w.must("add", "x")
		w.must("commit", "-q", "-m", "good")
		testworld.Equal(t, w.Git("log", "-1", "--format=%(trailers:only)"), "Netsky-Agent: agent3", "the trailer")
		testworld.Equal(t, w.Read(".git/ran"), "ran pre-commit\nran prepare-commit-msg\n", "ran")
	}
	w.script(".git/hooks/pre-commit", `echo own >> .git/ran`)
	w.Write("x", "more", ".git/ran", "")
	w.must("commit", "-q", "-am", "good")
	testworld.Equal(t, w.Read(".git/ran"), "own\nran prepare-commit-msg\n", "ran")
}
