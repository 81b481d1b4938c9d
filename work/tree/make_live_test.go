//go:build live

package tree_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"netsky/home"
	"netsky/internal/testworld"
	"netsky/work/git"
	"netsky/work/tree"
)

// A directory that was away as its worktree was to be made again, and is back, stays as it is.
func TestMakeAfterReturn(t *testing.T) {
	t.Parallel()
	for _, entry := range []bool{true, false} {
		f := newField(t)
		_, at := f.make("agent1")
		at.Write("a.txt", "mine\n")
		testworld.Must(t, os.Rename(at.Dir, at.Dir+".away"))
		lock := filepath.Join(f.Dir, ".git", "refs", "heads", "netsky", "agent1.lock") // git can't go on
		testworld.Must(t, os.WriteFile(lock, nil, 0o600))
		r := testworld.Got(git.Open(t.Context(), f.Dir, ""))(t)
		if p, err := tree.Make(t.Context(), f.home, "agent1", r, false); err == nil || p.Ready {
			t.Fatalf("%+v, %v", p, err)
		}
		testworld.Must(t, errors.Join(os.Remove(lock), os.RemoveAll(at.Dir)))
		if !entry {
			f.Git("worktree", "prune")
		}
		testworld.Must(t, os.Rename(at.Dir+".away", at.Dir))
		if _, err := tree.Make(t.Context(), f.home, "agent1", r, false); err == nil || at.Read("a.txt") != "mine\n" {
			t.Errorf("with an entry %t: %v: %q", entry, err, at.Read("a.txt"))
		}
	}
}

// What is changed in a submodule stays: git would remove it for a file that has replaced the submodule.
func TestMakeKeepsSubmodule(t *testing.T) {
	t.Parallel()
	f := newField(t)
	sub := testworld.NewRepo(t, filepath.Join(t.TempDir(), "sub"))
	f.Git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub.Dir, "lib")
	head := f.Commit("lib")
	_, at := f.make("agent1")
	at.Git("-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
	at.Write("lib/a.txt", "mine", "lib/new", "new")
	f.Git("rm", "-q", "lib")
	f.Commit("a file", "lib", "file")
	if p, _ := f.make("agent1"); p.Moved != "" || at.Git("rev-parse", "HEAD") != head || at.Read("lib/a.txt")+at.Read("lib/new") != "minenew" || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "lib/") {
		t.Errorf("%+v: %q", p, at.Read("lib/a.txt"))
	}
}

func TestMakeAfterLoss(t *testing.T) {
	t.Parallel()
	f := newField(t)
	_, at := f.make("agent1")
	mine := at.Commit("mine", "b.txt", "b")
	for _, name := range []string{home.WorkDir, tree.Dirname} {
		testworld.Must(t, os.RemoveAll(f.home.Path(name)))
	}
	if p, at := f.make("agent1"); p.Branch != "refs/heads/netsky/agent1" || at.Git("rev-parse", "HEAD") != mine {
		t.Errorf("%+v", p)
	}

	at.Write("a.txt", "not committed\n", "new.txt", "new")
	testworld.Must(t, os.RemoveAll(f.home.Path(tree.Dirname)))
	if p, at := f.make("agent1"); p.Fresh || p.Branch != "refs/heads/netsky/agent1" || at.Read("a.txt") != "not committed\n" || at.Read("new.txt") != "new" {
		t.Errorf("a worktree whose record was lost: %+v", p)
	}
}

// A repository that was moved is found again where it is, with the agents' work.
func TestMakeAfterMove(t *testing.T) {
	t.Parallel()
	for _, repaired := range []bool{false, true} {
		f := newField(t)
		_, at := f.make("agent1")
		head := at.Commit("work", "b.txt", "b")
		at.Write("c.txt", "not committed")
		testworld.Must(f.t, os.Rename(f.Dir, f.Dir+"2"))
		moved := f.At(f.Dir + "2")
		if repaired {
			moved.Git("worktree", "repair")
		}
		now, err := git.Open(t.Context(), moved.Dir, "")
		testworld.Must(f.t, err)
		q, err := tree.Make(t.Context(), f.home, "agent1", now, true)
		if err != nil || q.Fresh || q.Repo != now.Common || q.Main != moved.Dir || at.Git("rev-parse", "HEAD") != head || at.Read("c.txt") != "not committed" {
			t.Errorf("repaired %t: %+v, %v", repaired, q, err)
		}
		if w, err := tree.Load(f.home, "agent1"); err != nil || w.Repo != now.Common {
			t.Errorf("on record: %+v, %v", w, err)
		}
		if out, err := exec.Command("cp", "-R", moved.Dir, f.Dir).CombinedOutput(); err != nil {
			t.Fatal(string(out))
		}
		testworld.Fails(t, testworld.Err(tree.Make(t.Context(), f.home, "agent1", f.open(), true)), "", "a copy counts as the repository")
	}
}
