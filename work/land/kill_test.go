package land_test

import (
	"os"
	"strings"
	"testing"

	"netsky/internal/testworld"
)

// Before git has written anything, what differs is the owner's. What can't be told yet, waits.
func TestNothingWritten(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.clone("agent1").Commit("two", "a.txt", "two\n", "empty", "new\n")
	before := y.Git("rev-parse", "main")
	if out := y.netsky("land agent1", stepNumber(t, y, "move")); !strings.HasSuffix(strings.TrimSpace(out), "step move") {
		t.Fatal(out)
	}
	y.Write("a.txt", "", "empty", "") // each is the beginning of anything
	config := y.Read(".git/config")
	for _, tt := range []struct {
		away, back func() error
	}{
		{func() error { return os.Rename(y.Dir, y.Dir+"2") }, func() error { return os.Rename(y.Dir+"2", y.Dir) }},
		{func() error { y.Write(".git/config", config+"[odd"); return nil }, func() error { y.Write(".git/config", config); return nil }},
	} {
		err := tt.away()
		y.desk.Recover(t.Context())
		if _, serr := os.Stat(y.home.Path("state/landing.json")); err != nil || serr != nil {
			t.Errorf("it was decided: %v, %v; said: %q", err, serr, *y.said)
		}
		testworld.Must(t, tt.back())
	}
	y.desk.Recover(t.Context())
	if got := y.Git("status", "--porcelain"); y.Git("rev-parse", "main") != before || got != "M a.txt\n?? empty" || y.Read("a.txt") != "" {
		t.Errorf("%s", got)
	}
	y.tidy()
}

// stepNumber returns which step of a landing, forward if nothing else is said, has that name. Its steps do not depend on the
// repository.
func stepNumber(t *testing.T, y yard, name string, how ...string) int {
	t.Helper()
	other := newYard(t)
	other.clone("agent1").Commit("x", "x", "x")
	for i, line := range strings.Split(other.netsky("land agent1 "+strings.Join(how, ""), 0), "\n") {
		if line == "step "+name {
			return i + 1
		}
	}
	t.Fatalf("no step %s", name)
	return 0
}
