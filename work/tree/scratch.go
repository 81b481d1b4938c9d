package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"netsky/home"
	"netsky/work/git"
)

// ScratchDir is where scratch worktrees are, below the home: each in a directory with its id, beside
// a file that names its repository.
const ScratchDir = home.WorkDir + "/.scratch"

const (
	scratchRepo = "repository"
	scratchTree = "tree"
)

// A Scratch is a worktree that nobody works in: without a branch, below the home, and removed with
// all that is in it. Its directory is locked while it is in use, so that what a crash left is known.
type Scratch struct {
	Dir  string // its root, by its real path
	home home.Dir
	base string // the directory that holds it
	repo string
	lock *os.File

	hooks string // where the owner has them
}

// NewScratch checks out a commit. No hook of the repository's is run.
func NewScratch(ctx context.Context, h home.Dir, r git.Repo, id, commit string) (s Scratch, err error) {
	base := filepath.Join(h.Path(ScratchDir), id)
	lock, err := makeLocked(base)
	if err != nil {
		return s, err
	}
	s = Scratch{Dir: filepath.Join(realOf(base), scratchTree), home: h, base: base, repo: r.Common, lock: lock}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Remove(context.WithoutCancel(ctx)))
		}
	}()
	if err := os.WriteFile(filepath.Join(base, scratchRepo), []byte(r.Common), 0o600); err != nil {
		return s, err
	}
	if err := again(func() error { return s.add(ctx, h, r, commit) }); err != nil {
		return s, fmt.Errorf("git worktree add: %w", err)
	}
	if s.hooks, err = r.HooksDir(ctx); err != nil {
		return s, err
	}
	d := git.Dir{Path: s.Dir, Within: makeTime, Env: whole}
	if _, err := d.Run(ctx, 4096, "reset", "--hard", "--no-recurse-submodules", "--quiet"); err != nil {
		return s, fmt.Errorf("git reset: %w", err)
	}
	return s, nil
}

// whole has a git in a scratch worktree write all files: git takes over what a sparse checkout leaves out.
var whole = []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.sparseCheckout", "GIT_CONFIG_VALUE_0=false"}

func (s Scratch) add(ctx context.Context, h home.Dir, r git.Repo, commit string) error {
	lock, err := h.WaitLock(ctx, home.EntriesLock, nil)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	_, err = git.Dir{Path: r.Top, Within: makeTime}.Run(ctx, 4096, "worktree", "add", "--force", "--force", "--no-checkout", "--detach", "--", s.Dir, commit)
	return err
}

// Act returns a git in it that runs the hooks that the repository has where it was made from: with a
// relative core.hooksPath, those here are what an agent has committed.
func (s Scratch) Act() git.Dir {
	return git.Dir{Path: s.Dir, Acts: true, Within: makeTime, Hooks: s.hooks, Env: whole}
}

// Include copies the ignored files that a worktree of the repository gets, such as .env.
func (s Scratch) Include(ctx context.Context, r git.Repo) (notes []string, err error) {
	err = Worktree{Dir: s.Dir}.copyIncluded(ctx, r, &notes)
	return notes, err
}

// Remove removes the worktree, and git's entry of it.
func (s Scratch) Remove(ctx context.Context) error {
	if s.lock != nil {
		defer s.lock.Close()
	}
	return removeScratch(ctx, s.home, s.base, s.repo)
}

// Sweep removes the scratch worktrees that a crash has left.
func Sweep(ctx context.Context, h home.Dir) error {
	list, err := os.ReadDir(h.Path(ScratchDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range list {
		base := filepath.Join(h.Path(ScratchDir), e.Name())
		lock, lerr := lockDir(base)
		if lerr != nil {
			continue // in use, or gone
		}
		repo, rerr := os.ReadFile(filepath.Join(base, scratchRepo))
		if errors.Is(rerr, fs.ErrNotExist) {
			rerr = nil // git was not asked yet
		}
		if rerr == nil {
			rerr = removeScratch(ctx, h, base, string(repo))
		}
		err = errors.Join(err, rerr, lock.Close())
	}
	return err
}

func removeScratch(ctx context.Context, h home.Dir, base, repo string) error {
	tree := filepath.Join(base, scratchTree)
	// A command may have made directories that nothing can be removed from.
	_ = filepath.WalkDir(tree, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			if info, err := e.Info(); err == nil && info.Mode().Perm()&0o700 != 0o700 {
				_ = os.Chmod(path, 0o700)
			}
		}
		return nil
	})
	if err := os.RemoveAll(tree); err != nil {
		return err
	}
	if err := dropEntry(ctx, h, filepath.Join(realOf(base), scratchTree), repo); err != nil {
		return err
	}
	err := os.RemoveAll(base)
	_ = os.Remove(filepath.Dir(base)) // fails while there are others
	return err
}

// dropEntry removes git's entry of a worktree whose directory is gone, if there is one.
func dropEntry(ctx context.Context, h home.Dir, tree, repo string) error {
	if _, err := os.Stat(repo); repo == "" || err != nil {
		return nil // with its repository
	}
	lock, err := h.WaitLock(ctx, home.EntriesLock, nil)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	d := git.Dir{Path: repo}
	list, err := Entries(ctx, d)
	if err != nil || !slices.ContainsFunc(list, func(e Entry) bool { return e.Dir == tree }) {
		return err
	}
	return again(func() error {
		_, err := d.Run(ctx, 4096, "worktree", "remove", "--force", "--force", "--", tree)
		return err
	})
}

// An Entry is a worktree that git knows of. Its directory may be gone.
type Entry struct {
	Dir    string
	Branch string // that is checked out, a full ref name; "" is none
}

// Entries lists the worktrees of a repository.
func Entries(ctx context.Context, d git.Dir) (list []Entry, err error) {
	var out string
	err = again(func() (err error) {
		out, err = d.List(ctx, "worktree", "list", "--porcelain", "-z")
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("git worktree list: %w", err)
	}
	for entry := range strings.SplitSeq(out, "\x00\x00") {
		var e Entry
		for line := range strings.SplitSeq(entry, "\x00") {
			if dir, ok := strings.CutPrefix(line, "worktree "); ok {
				e.Dir = dir
			} else if ref, ok := strings.CutPrefix(line, "branch "); ok {
				e.Branch = ref
			}
		}
		if e.Dir != "" {
			list = append(list, e)
		}
	}
	return list, nil
}

// makeLocked makes a directory and locks it. A Sweep may remove it in between.
func makeLocked(dir string) (f *os.File, err error) {
	for range 10 {
		if err = os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		if f, err = lockDir(dir); err != nil {
			continue
		}
		ours, err := f.Stat()
		if there, serr := os.Lstat(dir); err == nil && serr == nil && os.SameFile(ours, there) {
			return f, nil
		}
		f.Close()
	}
	return nil, fmt.Errorf("%s: is removed again and again: %w", dir, err)
}

// lockDir opens a directory and locks it for this process, without waiting.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
