package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"netsky/internal/advice"
)

// Errors of Open: why no worktrees can be made there.
var (
	ErrNone   = errors.New("not in a git repository")
	ErrUnborn = advice.With(errors.New("the repository has no commit yet"), "make a first commit")
	ErrBare   = errors.New("a bare repository, which has no files to work on")
	ErrOldGit = advice.With(errors.New("git is older than 2.38"), "install a newer git")
)

// A Repo is a git repository, as it is found from a directory in one of its worktrees. It holds
// nothing that changes, so what a Repo says about its branches is asked of git each time.
type Repo struct {
	Top    string // the root of that worktree
	Sub    string // the directory, relative to Top; "." is Top itself
	Common string // the git directory that all its worktrees share
	Git    string // that worktree's own git directory: its index, its HEAD
	Hooks  string // where one that acts finds hooks; "" is where git does

	pinned  bool
	doubted bool
}

// Pin returns a linked worktree whose repository is not looked for: git takes it from here, whatever is
// written in the worktree, so that who works there can't have a git from outside obey a configuration of
// theirs; no program is started that the worktree's own part of its repository's configuration names. It
// runs no hooks, unless Hooks is set: a relative core.hooksPath leads into the worktree.
func Pin(top, entry, common string) Repo {
	return Repo{Top: top, Sub: ".", Common: common, Git: entry, Hooks: NoHooks, pinned: true}
}

// Doubt returns the repository as one in which an agent can write all: no program is started that it names, and
// no hook of its.
func (r Repo) Doubt() Repo {
	r.Hooks, r.doubted = NoHooks, true
	return r
}

// dir returns a git in the worktree's root.
func (r Repo) dir() Dir {
	d := Dir{Path: r.Top, Hooks: r.Hooks}
	if r.pinned {
		d.Env = []string{"GIT_DIR=" + r.Git, "GIT_COMMON_DIR=" + r.Common, "GIT_WORK_TREE=" + r.Top}
		_, err := os.Lstat(filepath.Join(r.Git, "config.worktree"))
		if r.Hooks != "" && !errors.Is(err, fs.ErrNotExist) { // an agent works there
			d.Doubted = []string{Own}
		}
	}
	if r.doubted {
		d.Doubted = []string{Local, Own}
	}
	return d
}

// Open finds the repository that contains dir. One whose root is, or contains, ceiling does not
// count; that is the user's whole home directory.
func Open(ctx context.Context, dir, ceiling string) (Repo, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Repo{}, err
	}
	d := Dir{Path: real, Ceiling: cmp.Or(ceiling, "/")}
	out, err := d.Run(ctx, maxPaths, "rev-parse", "--is-bare-repository", "--is-inside-git-dir")
	switch bare, inside, _ := strings.Cut(strings.TrimSpace(out), "\n"); {
	case err != nil && strings.Contains(err.Error(), "not a git repository"):
		return Repo{}, ErrNone
	case err != nil:
		return Repo{}, err
	case bare == "true":
		return Repo{}, ErrBare
	case inside == "true":
		return Repo{}, ErrNone
	}
	paths, err := d.paths(ctx, "--show-toplevel", "--absolute-git-dir", "--git-common-dir")
	if err != nil {
		return Repo{}, err
	}
	r := Repo{Top: paths[0], Git: paths[1], Common: paths[2]}
	if holds(r.Top, ceiling) {
		return Repo{}, ErrNone
	}
	if r.Sub, err = filepath.Rel(r.Top, real); err != nil {
		return Repo{}, err
	}
	if _, err := d.Run(ctx, 256, "rev-parse", "--quiet", "--verify", "HEAD^{commit}"); err != nil {
		return Repo{}, ErrUnborn
	}
	return r, nil
}

const maxPaths = 16 << 10

// paths returns what rev-parse's options print, without symlinks.
func (d Dir) paths(ctx context.Context, options ...string) ([]string, error) {
	out, err := d.Run(ctx, maxPaths, append([]string{"rev-parse", "--path-format=absolute"}, options...)...)
	if err != nil {
		return nil, err
	}
	paths := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(paths) != len(options) { // some contain a line break
		paths = nil
		for _, o := range options {
			out, err := d.Run(ctx, maxPaths, "rev-parse", "--path-format=absolute", o)
			if err != nil {
				return nil, err
			}
			paths = append(paths, strings.TrimSuffix(out, "\n"))
		}
	}
	for i, p := range paths {
		if paths[i], err = filepath.EvalSymlinks(p); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// holds reports whether a directory is another one or contains it.
func holds(dir, other string) bool {
	if other == "" {
		return false
	}
	if real, err := filepath.EvalSymlinks(other); err == nil {
		other = real
	}
	return dir == other || strings.HasPrefix(other, strings.TrimSuffix(dir, "/")+"/")
}

// Same reports whether both are worktrees of one repository.
func (r Repo) Same(other Repo) bool { return r.Common == other.Common }

// Branch returns a branch as people name it, without refs/heads/.
func Branch(ref string) string { return strings.TrimPrefix(ref, "refs/heads/") }

// Look returns a git in the worktree's root that changes nothing.
func (r Repo) Look() Dir { return r.dir() }

// Act returns a git in the worktree's root that may change things, and may take as long as within.
func (r Repo) Act(within time.Duration) Dir {
	d := r.dir()
	d.Acts, d.Within = true, within
	return d
}

// HooksDir returns where git finds the hooks of that worktree.
func (r Repo) HooksDir(ctx context.Context) (string, error) {
	if r.Hooks != "" {
		return r.Hooks, nil
	}
	d := r.dir()
	d.Acts, d.Hooks = true, "" // it changes nothing, but one that looks has no hooks
	out, err := d.Run(ctx, maxPaths, "rev-parse", "--path-format=absolute", "--git-path", "hooks")
	return strings.TrimSuffix(out, "\n"), err
}

// Head returns the branch that is checked out, as a full ref name, and its commit. With a
// detached HEAD the branch is "".
func (r Repo) Head(ctx context.Context) (branch, commit string, err error) {
	d := r.Look()
	if branch, err = d.First(ctx, "symbolic-ref", "--quiet", "HEAD"); err != nil {
		branch = ""
	}
	commit, err = d.First(ctx, "rev-parse", "--quiet", "--verify", "HEAD^{commit}")
	return branch, commit, err
}

// Commit returns the commit that a name stands for, "" if there is none.
func (r Repo) Commit(ctx context.Context, name string) (string, error) {
	commit, err := r.Look().First(ctx, "rev-parse", "--quiet", "--verify", "--end-of-options", name+"^{commit}")
	if ge := new(Error); err == nil || errors.As(err, &ge) && ge.Status == 1 { // more is that git can't tell
		return commit, nil
	}
	return "", err
}

// Version fails with ErrOldGit if git lacks what a merge without a worktree needs.
func Version(ctx context.Context) error {
	out, err := Dir{Path: "/"}.First(ctx, "version")
	if err != nil {
		return fmt.Errorf("git: %w", err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(strings.TrimPrefix(out, "git version "), "%d.%d", &major, &minor); err != nil {
		return fmt.Errorf("git: its version cannot be told from %q", out)
	}
	if major < 2 || major == 2 && minor < 38 {
		return ErrOldGit
	}
	return nil
}

// Dirty counts the files that differ from the last commit, up to a limit: changed, added, deleted,
// and new ones that are not ignored. A new directory counts once.
func (r Repo) Dirty(ctx context.Context, limit int) (n int, err error) {
	// The repository of a submodule may have a configuration of its own, by whoever works there.
	out, err := r.Look().List(ctx, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=dirty")
	if err != nil {
		return 0, err
	}
	return min(strings.Count(out, "\x00"), limit), nil
}
