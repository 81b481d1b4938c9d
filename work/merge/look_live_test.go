//go:build live

package merge_test

import (
	"path/filepath"
	"testing"

	"netsky/internal/testworld"
	"netsky/work/merge"
)

// What landed on the branch that the target follows has landed.
func TestLookUpstream(t *testing.T) {
	t.Parallel()
	f := newField(t)
	remote := filepath.Join(t.TempDir(), "remote.git")
	f.Git("clone", "-q", "--bare", f.Dir, remote)
	f.Git("remote", "add", "origin", remote)
	f.Git("fetch", "-q", "origin")
	f.Git("branch", "-q", "--set-upstream-to", "origin/main")
	one := f.agent("agent1")
	one.Commit("one", "x", "x")
	look := func() string {
		fc := merge.New(f.home)
		defer fc.Close()
		c := testworld.Got(fc.Look(t.Context()))(t)
		return told(c)
	}
	testworld.Equal(t, look(), "agent1 +1 -0 ~0")
	one.Git("push", "-q", "origin", "HEAD:main")
	f.Git("fetch", "-q", "origin")
	testworld.Equal(t, look(), "agent1 +1 -0 ~0 landed")

	// As one commit, behind one of somebody else's; and then more work.
	two := f.agent("agent2")
	two.Commit("two", "y", "y")
	two.Commit("two again", "y", "Y")
	there := testworld.NewRepo(t, filepath.Join(t.TempDir(), "there"))
	there.Git("fetch", "-q", remote, "main")
	there.Git("reset", "-q", "--hard", "FETCH_HEAD")
	there.Commit("other", "z", "z")
	there.Commit("squashed", "y", "Y")
	there.Git("push", "-q", remote, "HEAD:main")
	f.Git("fetch", "-q", "origin")
	testworld.Equal(t, look(), "agent1 +1 -0 ~0 landed\nagent2 +2 -0 ~0 landed")
	two.Commit("more", "w", "w")
	testworld.Equal(t, look(), "agent1 +1 -0 ~0 landed\nagent2 +3 -0 ~0")
}
