package tree_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"netsky/internal/testworld"
	"netsky/work/tree"
)

// Whatever an agent makes of its directory, git is given the repository that the worktree was made
// from, or the worktree is said not to be git's any more.
func TestGit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		do   func(f field, w tree.Worktree)
		err  error
	}{
		{name: "as it was made", do: func(field, tree.Worktree) {}},
		{name: "moved by git", do: func(f field, w tree.Worktree) {
			f.Git("worktree", "move", w.Dir, w.Dir+"2")
			f.Git("worktree", "move", w.Dir+"2", w.Dir)
		}},
		{name: "deleted", do: func(f field, w tree.Worktree) { testworld.Must(f.t, os.RemoveAll(w.Dir)) }, err: fs.ErrNotExist},
		{name: "another repository", do: func(f field, w tree.Worktree) {
			testworld.Must(f.t, os.Remove(filepath.Join(w.Dir, ".git")))
			f.At(w.Dir).Git("init", "-q")
		}, err: tree.ErrReplaced},
		{name: "a link to another", do: func(f field, w tree.Worktree) {
			other := f.At(w.Dir + "-other")
			f.Git("init", "-q", other.Dir)
			testworld.Must(f.t, os.Remove(filepath.Join(w.Dir, ".git")))
			testworld.Must(f.t, os.Symlink(filepath.Join(other.Dir, ".git"), filepath.Join(w.Dir, ".git")))
		}, err: tree.ErrReplaced},
		{name: "a file that leads elsewhere", do: func(f field, w tree.Worktree) {
			testworld.Must(f.t, os.WriteFile(filepath.Join(w.Dir, ".git"), []byte("gitdir: .gut\n"), 0o600))
		}, err: tree.ErrReplaced},
		{name: "no .git", do: func(f field, w tree.Worktree) { testworld.Must(f.t, os.Remove(filepath.Join(w.Dir, ".git"))) }, err: tree.ErrReplaced},
		{name: "no entry", do: func(f field, w tree.Worktree) {
			testworld.Must(f.t, os.RemoveAll(filepath.Join(f.Dir, ".git", "worktrees")))
		}, err: tree.ErrReplaced},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			p, _ := f.make("agent1")
			tt.do(f, p.Worktree)
			r, err := p.Git()
			if tt.err != nil {
				if !errors.Is(err, tt.err) || tt.err == tree.ErrReplaced && errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%v, want %v", err, tt.err)
				}
				return
			}
			testworld.Must(t, err)
			if branch, _, err := r.Head(t.Context()); err != nil || branch != p.Branch || r.Common != p.Repo {
				t.Errorf("%s of %s, %v", branch, r.Common, err)
			}
			// It is that repository whatever is written there afterwards.
			testworld.Must(f.t, os.Remove(filepath.Join(p.Dir, ".git")))
			f.At(p.Dir).Git("init", "-q", "-b", "forged")
			if branch, _, err := r.Head(t.Context()); err != nil || branch != p.Branch {
				t.Errorf("once it is replaced: %s, %v", branch, err)
			}
		})
	}
}
