package cli_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/work/git"
	"netsky/work/tree"
)

// filed is a repository of 50,000 files in 500 directories.
func filed(b *testing.B, dir string) testworld.Repo {
	b.Helper()
	r := testworld.NewRepo(b, dir)
	var files []string
	for i := range 50_000 {
		files = append(files, fmt.Sprintf("d%d/f%d.go", i%500, i/500), fmt.Sprintf("package d%d\n\n%s%d\n", i%500, strings.Repeat("// one line of a file\n", 12), i))
	}
	r.Commit("many", files...)
	return r
}

// BenchmarkUpWorktrees compares up of ten clones, each in a worktree of 50,000 files, with
// ten bare `git worktree add`, two at a time.
func BenchmarkUpWorktrees(b *testing.B) {
	w := mustWorld(b)
	r := filed(b, filepath.Join(w.dir, "src"))
	h := w.mustHome(b)
	w.must(b, "netsky", "init")
	own := "[runtime.mine]\ncommand = [\"cat\"]\n"
	testworld.Must(b, h.WriteFile(home.ConfigFile, []byte(own), false))
	bare := filepath.Join(w.dir, "bare")
	const remove = `for t in "$@"; do git worktree remove --force "$t" 2>/dev/null; done
		git worktree prune; git for-each-ref --format='delete %(refname)' refs/heads/bare refs/heads/netsky | git update-ref --stdin`
	clear := func() {
		b.StopTimer()
		w.must(b, "netsky", "down", "--all", "--force")
		args := []string{"-c", remove, "sh"}
		for n := range 10 {
			args = append(args, fmt.Sprint(bare, n), h.Path(home.Workspace(agent.Clone(n+1))))
		}
		w.must(b, "sh", append([]string{"-c", `cd "$0" && sh "$@"`, r.Dir}, args...)...)
		b.StartTimer()
	}
	clear()
	// Two that add entries at once may make each other fail (git 2.39), so the files only are
	// written two at a time.
	const add = `cd "$1" && for n in 0 1 2 3 4 5 6 7 8 9; do git worktree add -q --no-checkout -b bare/$n "$2$n" || exit; done &&
		printf '%s\n' 0 1 2 3 4 5 6 7 8 9 | xargs -P 2 -I N git -C "$2N" reset -q --hard`
	compare(b, func() { w.must(b, "netsky", "up", "10", "--dir", r.Dir, "--type", "mine", "--no-attach") },
		func() { w.must(b, "sh", "-c", add, "sh", r.Dir, bare) }, clear)
}

// BenchmarkWork compares `netsky work` of 20 agents with what somebody would type for each of them: its
// status, what it is ahead and behind, and whether it merges.
func BenchmarkWork(b *testing.B) {
	w := mustWorld(b)
	r := testworld.NewRepo(b, filepath.Join(w.dir, "src"))
	var files []string
	for i := range 1000 {
		files = append(files, fmt.Sprintf("d%d/f%d", i%20, i), fmt.Sprint(i, "\n"))
	}
	r.Commit("many", files...)
	h := w.mustHome(b)
	repo := testworld.Got(git.Open(b.Context(), r.Dir, ""))(b)
	args := []string{"-c", `for d; do git -C "$d" status -sb; git -C "$d" rev-list --count --left-right main...HEAD; git -C "$d" merge-tree --write-tree main HEAD; done`, "sh"}
	for n := range 20 {
		p := testworld.Got(tree.Make(b.Context(), h, agent.Clone(n+1), repo, false))(b)
		at := r.At(p.Dir)
		at.Write(fmt.Sprintf("d%d/f%d", n, n), "mine\n")
		if n%2 == 0 {
			at.Commit("mine")
		}
		args = append(args, p.Dir)
	}
	compare(b, func() { w.must(b, "netsky", "work") }, func() { w.must(b, "sh", args...) })
}
