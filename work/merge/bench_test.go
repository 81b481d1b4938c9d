package merge_test

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/work/git"
	"netsky/work/merge"
	"netsky/work/tree"
)

// twenty makes 20 agents, half of which have committed and half not, in a repository of so many files.
func twenty(b *testing.B, files int) (f field, trees []tree.Worktree) {
	f = field{Repo: testworld.NewRepo(b, filepath.Join(b.TempDir(), "src")), home: testworld.FastHome(b)}
	var all []string
	for n := range files {
		all = append(all, fmt.Sprintf("d%d/e%d/f%d", n%20, n%400, n), fmt.Sprint(n, "\n"))
	}
	f.Commit("files", all...)
	r := testworld.Got(git.Open(b.Context(), f.Dir, ""))(b)
	for n := range 20 {
		p := testworld.Got(tree.Make(b.Context(), f.home, agent.Clone(n+1), r, false))(b)
		at := f.At(p.Dir)
		at.Write(fmt.Sprintf("d%d/e%d/f%d", n%20, n, n), "mine\n", "a.txt", fmt.Sprint(n%3, "\n"))
		if n%2 == 0 {
			at.Commit("mine")
		}
		trees = append(trees, p.Worktree)
	}
	return f, trees
}

// bare does with git alone what a look does: the tree of each worktree with what is not committed, by a
// copy of its index, and one merge of all 190 pairs. It is the script that somebody would write.
const bare = `set -e
main=$1; shift; pairs=$(mktemp); index=$(mktemp); trees=
for dir; do
	git -C "$dir" status --porcelain --untracked-files=all >/dev/null
	cp "$(git -C "$dir" rev-parse --path-format=absolute --git-path index)" "$index"
	tree=$(cd "$dir" && GIT_INDEX_FILE=$index git add -A && GIT_INDEX_FILE=$index git write-tree)
	commit=$(git -C "$main" commit-tree -p "$(git -C "$dir" rev-parse HEAD)" -m x "$tree")
	for other in $trees; do echo "$other $commit"; done >>"$pairs"
	trees="$trees $commit"
done
git -C "$main" merge-tree --stdin --name-only <"$pairs" >/dev/null
rm "$pairs" "$index"`

// BenchmarkTwenty compares what a look at 20 agents costs, the first one, as by `netsky work`, and one of
// the daemon's that finds one worktree changed, with git alone. They are taken in turn.
func BenchmarkTwenty(b *testing.B) {
	f, trees := twenty(b, 1000)
	script := []string{"-c", bare, "sh", f.Dir}
	for _, w := range trees {
		script = append(script, w.Dir)
	}
	watching := merge.New(f.home)
	defer watching.Close()
	testworld.Got(watching.Look(b.Context()))(b)
	var first, again, git []time.Duration
	timed := func(list *[]time.Duration, do func() error) {
		began := time.Now()
		testworld.Must(b, do())
		*list = append(*list, time.Since(began))
	}
	for n := 0; b.Loop(); n++ {
		timed(&first, func() error {
			fc := merge.New(f.home)
			c, err := fc.Look(b.Context())
			if err == nil && (len(c.Sides) != 20 || len(c.Conflicts) == 0) {
				err = fmt.Errorf("%d sides, %d conflicts", len(c.Sides), len(c.Conflicts))
			}
			return errors.Join(err, fc.Close())
		})
		timed(&git, exec.Command("sh", script...).Run)
		f.At(trees[1].Dir).Write("a.txt", fmt.Sprint(n, " once more\n"))
		timed(&again, func() error {
			_, err := watching.Look(b.Context())
			return err
		})
	}
	median := func(list []time.Duration) float64 {
		slices.Sort(list)
		return float64(list[len(list)/2].Microseconds()) / 1e3
	}
	b.ReportMetric(median(first), "first-ms")
	b.ReportMetric(median(again), "again-ms")
	b.ReportMetric(median(git), "git-ms")
	b.ReportMetric(median(first)/median(git), "ratio")
	b.ReportMetric(0, "ns/op")
}
