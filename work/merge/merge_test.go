package merge_test

import (
	"path/filepath"
	"strings"
	"testing"

	"netsky/internal/testworld"
	"netsky/work/git"
	"netsky/work/merge"
)

// A pair that git refuses keeps no other from being merged.
func TestMergesRefused(t *testing.T) {
	t.Parallel()
	f := testworld.NewRepo(t, filepath.Join(t.TempDir(), "src"))
	base := f.Git("rev-parse", "HEAD")
	x := f.Commit("x", "x", "x")
	f.Git("checkout", "-q", "-b", "y", base)
	y := f.Commit("y", "x", "y", "n\nü\xff", "")
	f.Git("checkout", "-q", "--orphan", "other")
	other := f.Commit("other", "o", "o")
	none := strings.Repeat("0", 40)
	pairs := []merge.Pair{{x, other}, {x, y}, {none, x}, {base, y}, {y, other}}
	got, err := merge.Merges(t.Context(), git.Dir{Path: f.Dir}, pairs)
	if err != nil || len(got) != len(pairs) {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, want := range []string{"err", "x", "err", "", "err"} {
		have := strings.Join(got[i].Files, " ")
		if got[i].Err != nil {
			have = "err"
		}
		if have != want || got[i].Conflict != (want == "x") {
			t.Errorf("%v: %+v, want %s", pairs[i], got[i], want)
		}
	}
}
