package tree_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/work/git"
	"netsky/work/tree"
)

// A field is a home, and a repository beside it.
type field struct {
	testworld.Repo
	t    *testing.T
	home home.Dir
}

func newField(t *testing.T) field {
	t.Helper()
	dir := testworld.Got(filepath.EvalSymlinks(t.TempDir()))(t)
	return field{testworld.NewRepo(t, filepath.Join(dir, "src")), t, testworld.FastHome(t)}
}

func (f field) open() git.Repo {
	f.t.Helper()
	return testworld.Got(git.Open(f.t.Context(), f.Dir, ""))(f.t)
}

func (f field) make(id agent.ID) (tree.Placed, testworld.Repo) {
	f.t.Helper()
	p := testworld.Got(tree.Make(f.t.Context(), f.home, id, f.open(), true))(f.t)
	return p, f.At(p.Dir)
}

func TestMake(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.Commit("ignore", ".gitignore", ".env\n*.local\nCLAUDE.local.md\n", ".worktreeinclude", ".env\n*.local\na.txt\n")
	f.Write(".env", "A=1", "sub/x.local", "x", "CLAUDE.local.md", "be kind", "new.txt", "new", "a.txt", "changed\n")
	p, at := f.make("agent1")
	if !p.Fresh || p.Branch != "refs/heads/netsky/agent1" || p.Base != "refs/heads/main" || p.Dir != f.home.Path(home.Workspace("agent1")) || len(p.Notes) > 0 {
		t.Errorf("%+v", p)
	}
	for name, want := range map[string]string{".env": "A=1", "sub/x.local": "x", "CLAUDE.local.md": "be kind", "new.txt": "", "a.txt": "one\n"} {
		testworld.Equal(t, at.Read(name), want, "%s", name)
	}
	testworld.Equal(t, at.Git("status", "--porcelain"), "", "a new worktree is dirty")
	testworld.Equal(t, f.Git("status", "--porcelain"), "M a.txt\n?? new.txt", "the owner's directory has changed")

	at.Write("a.txt", "mine\n")
	if p, _ := f.make("agent1"); p.Fresh || p.Moved != "" || at.Read("a.txt") != "mine\n" {
		t.Errorf("a worktree with work: %+v", p)
	}
	mine := at.Commit("mine")
	testworld.Must(t, os.RemoveAll(p.Dir))
	if p, _ := f.make("agent1"); !p.Fresh || at.Git("rev-parse", "HEAD") != mine {
		t.Errorf("one that was deleted: %+v", p)
	}
	if list, err := tree.List(f.home); err != nil || len(list) != 1 || !list[0].Ready {
		t.Errorf("%+v, %v", list, err)
	}
}

// A worktree in which nothing is the agent's own follows what is checked out.
func TestMakeCatchesUp(t *testing.T) {
	t.Parallel()
	f := newField(t)
	_, at := f.make("agent1")
	f.Git("switch", "-qc", "feature")
	next := f.Commit("second", "b.txt", "b")
	p, _ := f.make("agent1")
	if p.Moved != next || p.Base != "refs/heads/feature" || at.Git("rev-parse", "HEAD") != next || at.Git("branch", "--show-current") != "netsky/agent1" {
		t.Errorf("%+v", p)
	}
	at.Write("new.txt", "mine")
	f.Commit("third", "c.txt", "c")
	if p, _ := f.make("agent1"); p.Moved != "" || at.Git("rev-parse", "HEAD") != next {
		t.Errorf("with a new file: %+v", p)
	}
}

// What stands in the way is named, and stays as it is.
func TestMakeRefuses(t *testing.T) {
	t.Parallel()
	f := newField(t)
	other := testworld.NewRepo(t, filepath.Join(t.TempDir(), "other"))
	p, _ := f.make("agent1")
	r := testworld.Got(git.Open(t.Context(), other.Dir, ""))(t)
	testworld.Fails(t, testworld.Err(tree.Make(t.Context(), f.home, "agent1", r, true)), "of the repository of "+f.Dir, "another repository")
	testworld.Must(t, os.RemoveAll(p.Dir))
	testworld.Must(t, os.Mkdir(p.Dir, 0o700))
	mine := filepath.Join(p.Dir, "mine.txt")
	testworld.Must(t, os.WriteFile(mine, []byte("x"), 0o600))
	testworld.Fails(t, testworld.Err(tree.Make(t.Context(), f.home, "agent1", f.open(), true)), "", "a directory that is no worktree was taken")
	testworld.Equal(t, testworld.Err(os.Stat(mine)), nil)
	f.home = testworld.FastHome(t)
	if p, _ := f.make("agent1"); p.Branch != "refs/heads/netsky/agent1-2" {
		t.Errorf("of a second home: %+v", p)
	}
}

// The work of a home that was lost goes on in one at the same place.
// Whoever interrupts it while files are written gets a worktree in which nobody works until the
// next start has finished it.
func TestMakeInterrupted(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.Commit("one", "a.txt", "one\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if p, err := tree.Make(ctx, f.home, "agent1", f.open(), true); err == nil {
		t.Fatalf("made all the same: %+v", p)
	}
	if w, err := tree.Load(f.home, "agent1"); err != nil || w.Ready {
		t.Errorf("the record says %+v, %v", w, err)
	}
	p, at := f.make("agent1")
	if got := at.Read("a.txt"); !p.Fresh || !p.Ready || got != "one\n" {
		t.Errorf("%+v, a.txt is %q", p, got)
	}
}

// What earlier work has left where a worktree would be stays as it is.
func TestMakeTaken(t *testing.T) {
	t.Parallel()
	f := newField(t)
	dir := f.home.Path(home.Workspace("agent1"), "topic")
	f.Git("worktree", "add", "-q", "-b", "agent1/topic", dir)
	testworld.ErrorIs(t, testworld.Err(tree.Make(t.Context(), f.home, "agent1", f.open(), true)), tree.ErrTaken)
	testworld.Equal(t, f.At(dir).Read("a.txt"), "one\n")
}

// A branch that the owner looks at is not checked out a second time, and what the owner has put where a
// worktree would be is not taken for the agent's.
func TestMakeBesideTheOwner(t *testing.T) {
	t.Parallel()
	f := newField(t)
	p, _ := f.make("agent1")
	testworld.Must(t, os.RemoveAll(p.Dir))
	f.Git("worktree", "prune")
	f.Git("checkout", "-q", "netsky/agent1")
	testworld.Fails(t, testworld.Err(tree.Make(t.Context(), f.home, "agent1", f.open(), true)), "its branch netsky/agent1 is checked out in "+f.Dir)
	f.Git("checkout", "-q", "main")
	f.make("agent1")
	moved := f.home.Path("workspaces", "moved")
	f.Git("worktree", "move", p.Dir, moved)
	testworld.Fails(t, testworld.Err(tree.Make(t.Context(), f.home, "agent1", f.open(), true)), "checked out in "+moved)
	f.Git("worktree", "move", moved, p.Dir)
	f.make("agent1")

	dir := f.home.Path(home.Workspace("agent2"))
	f.Git("worktree", "add", "-q", "-b", "topic", dir)
	testworld.ErrorIs(t, testworld.Err(tree.Make(t.Context(), f.home, "agent2", f.open(), true)), tree.ErrTaken, "the owner's worktree")
	testworld.Fails(t, testworld.Err(tree.Load(f.home, "agent2")), "", "it is on record as the agent's")
	whole := testworld.NewRepo(t, f.home.Path(home.Workspace("agent3")))
	r := testworld.Got(git.Open(t.Context(), whole.Dir, ""))(t)
	testworld.ErrorIs(t, testworld.Err(tree.Make(t.Context(), f.home, "agent3", r, true)), tree.ErrTaken, "the repository itself")
}

// A git of somebody else's that is just writing the entry of another worktree makes this one's
// fail; it is asked again.
func TestMakeBesideAnother(t *testing.T) {
	t.Parallel()
	f := newField(t)
	entry := filepath.Join(f.Dir, ".git", "worktrees", "half")
	testworld.Must(t, os.MkdirAll(entry, 0o755))
	common := filepath.Join(entry, "commondir")
	for name, text := range map[string]string{"gitdir": filepath.Join(t.TempDir(), "half", ".git") + "\n", "HEAD": strings.Repeat("0", 40) + "\n", "whole": "../..\n"} {
		testworld.Must(t, os.WriteFile(filepath.Join(entry, name), []byte(text), 0o600))
	}
	r := f.open()
	testworld.Must(t, syscall.Mkfifo(common, 0o600))
	once := make(chan error, 1)
	go func() { // the first that reads it finds nothing
		file, err := os.OpenFile(common, os.O_WRONLY, 0)
		if err == nil {
			err = errors.Join(os.Rename(filepath.Join(entry, "whole"), common), file.Close())
		}
		once <- err
	}()
	testworld.Equal(t, testworld.Err(tree.Make(t.Context(), f.home, "agent1", r, true)), nil)
	testworld.Equal(t, <-once, nil)
}
