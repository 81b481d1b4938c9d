//go:build live

package land_test

import (
	"testing"

	"netsky/work/land"
)

// The owner is asked to agree when the command is about to run, and not before.
func TestAgreeLate(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.desk.Command.Text = "true; exit 0"
	asked := 0
	y.desk.Agree = func() error {
		asked++
		return y.desk.Command.Agree(y.home)
	}
	check := func(want int) {
		t.Helper()
		if _, err := y.desk.Check(t.Context(), "agent1", land.CheckOptions{}); asked != want {
			t.Errorf("asked %d times, want %d: %v", asked, want, err)
		}
	}
	check(0)
	at := y.clone("agent1")
	check(0)
	at.Commit("work", "a.txt", "ours")
	check(1)
	y.Commit("theirs", "b", "b")
	check(1)
	y.Commit("theirs too", "a.txt", "theirs")
	check(1)
}
