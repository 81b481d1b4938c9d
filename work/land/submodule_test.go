//go:build live

package land_test

import (
	"path/filepath"
	"strings"
	"testing"

	"netsky/internal/testworld"
	"netsky/work/land"
)

// A submodule that is moved to a commit which the owner's copy lacks is named, by check and by landing.
func TestSubmoduleNotPushed(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	sub := testworld.NewRepo(t, filepath.Join(t.TempDir(), "sub"))
	y.Git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "--name", "a name", sub.Dir, "lib")
	y.Git("commit", "-q", "-m", "lib")
	at := y.clone("agent1")
	at.Git("-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
	lib := at.At(filepath.Join(at.Dir, "lib"))
	lib.Git("config", "user.name", "a")
	lib.Git("config", "user.email", "a@example.org")
	commit := lib.Commit("mine alone", "x.txt", "x\n")
	at.Commit("moves lib")
	want := "the submodule lib is at " + commit[:7] + ", which your copy of it lacks: unless the agent has pushed"
	k, err := y.desk.Check(t.Context(), "agent1", land.CheckOptions{})
	if err != nil || !strings.Contains(strings.Join(k.Notes, "\n"), want) {
		t.Errorf("check: %q, %v", k.Notes, err)
	}
	l := y.land("agent1", land.LandOptions{Unchecked: true})
	testworld.Contains(t, strings.Join(l.Notes, "\n"), want, "land: %q", l.Notes)

	// One that it has is not.
	at.Git("-C", "lib", "push", "-q", "origin", "HEAD:refs/heads/pushed")
	lib.Commit("pushed, too", "x.txt", "y\n")
	at.Git("-C", "lib", "push", "-q", "origin", "HEAD:refs/heads/pushed")
	y.Git("-C", "lib", "fetch", "-q", "origin")
	at.Commit("moves lib again")
	if k, err := y.desk.Check(t.Context(), "agent1", land.CheckOptions{}); err != nil || len(k.Notes) > 0 {
		t.Errorf("%q, %v", k.Notes, err)
	}
}
