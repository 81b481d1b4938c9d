package merge_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/work/git"
	"netsky/work/merge"
	"netsky/work/tree"
)

// A field is a home with a repository beside it, and worktrees of agents.
type field struct {
	testworld.Repo
	t    *testing.T
	home home.Dir
}

func newField(t *testing.T) field {
	t.Helper()
	return field{testworld.NewRepo(t, filepath.Join(t.TempDir(), "src")), t, testworld.FastHome(t)}
}

func (f field) agent(id agent.ID) testworld.Repo {
	f.t.Helper()
	r := testworld.Got(git.Open(f.t.Context(), f.Dir, ""))(f.t)
	p := testworld.Got(tree.Make(f.t.Context(), f.home, id, r, false))(f.t)
	return f.At(p.Dir)
}

// told writes a forecast as a line for each agent and each conflict.
func told(c merge.Forecast) string {
	var lines []string
	for _, s := range c.Sides {
		line := fmt.Sprintf("%s +%d -%d ~%d", s.Agent, s.Ahead, s.Behind, s.Dirty)
		if s.Landed {
			line += " landed"
		}
		if s.Gone {
			line += " gone"
		}
		if s.Err != nil {
			line += " " + s.Err.Error()
		}
		lines = append(lines, line)
	}
	for _, k := range c.Conflicts {
		lines = append(lines, fmt.Sprint(k.Agents, k.Target, k.Files))
	}
	return strings.Join(lines, "\n")
}

func TestLook(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.Commit("more", "b.txt", "1\n2\n3\n", "c.txt", "c\n")
	one, two, three := f.agent("agent1"), f.agent("agent2"), f.agent("agent3")
	fc := merge.New(f.home)
	defer fc.Close()
	check := func(want ...string) {
		t.Helper()
		c, err := fc.Look(t.Context())
		if got := told(c); err != nil || got != strings.Join(want, "\n") {
			t.Errorf("%s, %v; want\n%s", got, err, strings.Join(want, "\n"))
		}
		fresh := merge.New(f.home)
		defer fresh.Close()
		if c, err := fresh.Look(t.Context()); err != nil || told(c) != strings.Join(want, "\n") {
			t.Errorf("anew: %s, %v", told(c), err)
		}
	}
	check("agent1 +0 -0 ~0", "agent2 +0 -0 ~0", "agent3 +0 -0 ~0")

	one.Commit("one", "a.txt", "by one\n")
	two.Write("a.txt", "by two\n")
	three.Write("new.txt", "by three\n")
	check("agent1 +1 -0 ~0", "agent2 +0 -0 ~1", "agent3 +0 -0 ~1", "[agent1 agent2][a.txt]")

	// What is written again counts as it is now.
	two.Write("a.txt", "by one\n")
	check("agent1 +1 -0 ~0", "agent2 +0 -0 ~1", "agent3 +0 -0 ~1")

	// The target moves on.
	f.Commit("by the owner", "new.txt", "by the owner\n")
	check("agent1 +1 -1 ~0", "agent2 +0 -1 ~1", "agent3 +0 -1 ~1", "[agent3]main[new.txt]")

	// A squash that landed is no conflict, nor is a branch of which nothing is left.
	f.Commit("squashed", "a.txt", "by one\n")
	three.Write("a.txt", "by three\n")
	testworld.Must(t, os.Remove(filepath.Join(three.Dir, "new.txt")))
	two.Git("checkout", "-q", "a.txt")
	check("agent1 +1 -2 ~0 landed", "agent2 +0 -2 ~0", "agent3 +0 -2 ~1", "[agent3]main[a.txt]")

	// A directory that was deleted: what was committed is still there.
	testworld.Must(t, os.RemoveAll(one.Dir))
	testworld.Must(t, os.RemoveAll(filepath.Join(two.Dir, ".git")))
	check("agent1 +1 -2 ~0 landed gone",
		"agent2 +0 -0 ~0 "+two.Dir+" is no longer the worktree that git made: it has no .git",
		"agent3 +0 -2 ~1", "[agent3]main[a.txt]")
	testworld.Equal(t, f.Git("status", "--porcelain"), "", "the owner's directory has changed")
}

// What conflicts with the target conflicts with all that has the target's commits; those who have not
// touched the file have no part in it.
func TestLookWithTarget(t *testing.T) {
	t.Parallel()
	f := newField(t)
	one := f.agent("agent1")
	one.Commit("one", "a.txt", "by one\n", "b.txt", "by one\n")
	f.Commit("by the owner", "a.txt", "by the owner\n")
	two, three := f.agent("agent2"), f.agent("agent3")
	two.Write("new.txt", "by two\n")
	three.Commit("three", "a.txt", "by three\n", "b.txt", "by three\n")
	fc := merge.New(f.home)
	defer fc.Close()
	for range 2 { // from what is known as well
		c, err := fc.Look(t.Context())
		want := "agent1 +1 -1 ~0\nagent2 +0 -0 ~1\nagent3 +1 -0 ~0\n[agent1]main[a.txt]\n[agent1 agent3][a.txt b.txt]"
		if got := told(c); err != nil || got != want {
			t.Errorf("%s, %v; want\n%s", got, err, want)
		}
	}
}

// A file that one has renamed and another has changed is in conflict between them, whatever it is in with the
// target.
func TestLookRenamed(t *testing.T) {
	t.Parallel()
	f := newField(t)
	lines := "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
	f.Commit("x", "x", lines, "z", lines)
	one, two := f.agent("agent1"), f.agent("agent2")
	one.Git("mv", "x", "y")
	one.Commit("renamed", "y", strings.NewReplacer("1", "one", "9", "nine").Replace(lines))
	two.Commit("edited", "x", strings.Replace(lines, "9", "neuf", 1))
	f.Commit("mine", "x", strings.Replace(lines, "1", "eins", 1))
	fc := merge.New(f.home)
	defer fc.Close()
	c := testworld.Got(fc.Look(t.Context()))(t)
	for _, want := range []string{"[agent1]main[y]", "[agent1 agent2][y]"} {
		if !strings.Contains(told(c), want) {
			t.Errorf("%s is missing:\n%s", want, told(c))
		}
	}
}

// What is odd about one worktree keeps nothing of the others from being seen.
func TestLookOdd(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.Commit("more", "sub/b.txt", "b\n", "deep/c.txt", "c\n")
	locked, sparse, filtered, plain := f.agent("agent1"), f.agent("agent2"), f.agent("agent3"), f.agent("agent4")
	elsewhere := testworld.NewRepo(t, filepath.Join(t.TempDir(), "other"))
	r := testworld.Got(git.Open(t.Context(), elsewhere.Dir, ""))(t)
	for _, id := range []agent.ID{"agent5", "agent6"} {
		if id == "agent6" { // of a repository that is deleted
			gone := testworld.NewRepo(t, filepath.Join(t.TempDir(), "gone"))
			r = testworld.Got(git.Open(t.Context(), gone.Dir, ""))(t)
			defer os.RemoveAll(gone.Dir)
		}
		p := testworld.Got(tree.Make(t.Context(), f.home, id, r, false))(t)
		f.At(p.Dir).Write("a.txt", string(id)+"\n")
	}
	testworld.Must(t, os.RemoveAll(r.Common))
	locked.Write("a.txt", "locked\n")
	testworld.Must(t, os.WriteFile(locked.Git("rev-parse", "--git-path", "index.lock"), nil, 0o600))
	sparse.Git("sparse-checkout", "set", "--no-cone", "/sub/")
	sparse.Write("sub/b.txt", "sparse\n")
	f.Git("config", "filter.broken.clean", "false")
	f.Git("config", "filter.broken.required", "true")
	filtered.Write(".gitattributes", "*.txt filter=broken\n", "a.txt", "filtered\n")
	plain.Write("a.txt", "plain\n", "deep/c.txt", "plain\n")

	fc := merge.New(f.home)
	defer fc.Close()
	c := testworld.Got(fc.Look(t.Context()))(t)
	lines := strings.Split(told(c), "\n")
	want := []string{
		"agent1 +0 -0 ~1", "agent2 +0 -0 ~1", "agent3 ", "agent4 +0 -0 ~2", "agent5 +0 -0 ~1", "agent6 ", "[agent1 agent4][a.txt]",
	}
	if len(lines) != len(want) {
		t.Fatalf("%s", told(c))
	}
	for i, w := range want {
		if !strings.HasPrefix(lines[i], w) {
			t.Errorf("%q, want %q", lines[i], w)
		}
	}
	for id, want := range map[agent.ID]string{"agent3": "filter 'false' failed", "agent6": "its repository is gone"} {
		if s, _ := c.Of(id); s.Err == nil || !strings.Contains(s.Err.Error(), want) {
			t.Errorf("%s: %v, want %s", id, s.Err, want)
		}
	}
	// Files that a sparse checkout leaves out are not taken for deleted.
	s, _ := c.Of("agent2")
	if s.Dirty != 1 || s.Err != nil {
		t.Errorf("%+v", s)
	}
}
