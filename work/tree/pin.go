package tree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"netsky/home"
	"netsky/internal/advice"
	"netsky/work/git"
)

// ErrReplaced is returned for an agent's directory that is no worktree of its repository any more.
var ErrReplaced = errors.New("is no longer the worktree that git made")

// Git returns the worktree as git keeps it: its repository is not looked for in its directory, where an
// agent may have written another one. The error matches fs.ErrNotExist if the directory was deleted.
func (w Worktree) Git() (git.Repo, error) {
	if _, err := os.Lstat(w.Dir); err != nil {
		return git.Repo{}, err
	}
	top := realOf(w.Dir)
	entry, err := entryOf(w.Repo, top)
	if err != nil {
		return git.Repo{}, err
	}
	if err := leadsTo(top, entry); err != nil {
		return git.Repo{}, fmt.Errorf("%s %w: %w", w.Dir, ErrReplaced, err)
	}
	return git.Pin(top, entry, w.Repo), nil
}

// Acting is Git for what may change something: the repository's hooks run, those that the owner has where
// the worktree was made from, and none that somebody has put into the worktree.
func (w Worktree) Acting(ctx context.Context) (git.Repo, error) {
	r, err := w.Git()
	if err != nil {
		return r, err
	}
	if hooks, err := (git.Repo{Top: w.Main}).HooksDir(ctx); err == nil {
		r.Hooks = hooks
	}
	return r, nil
}

// At returns the worktree of a repository that is in a directory, pinned if it is a linked one.
func At(common, dir string) (git.Repo, error) {
	top := realOf(dir)
	entry, err := entryOf(common, top)
	switch {
	case errors.Is(err, ErrReplaced): // the main one
		return git.Repo{Top: top, Sub: ".", Common: common, Git: common}, nil
	case err != nil:
		return git.Repo{}, err
	}
	r := git.Pin(top, entry, common)
	r.Hooks = ""
	return r, nil
}

// Entry returns git's own directory for the worktree, also if its files are gone.
func (w Worktree) Entry() (string, error) { return entryOf(w.Repo, realOf(w.Dir)) }

// entryOf returns git's own directory for the worktree.
func entryOf(common, top string) (string, error) {
	list, err := LinkedTo(common)
	if err != nil {
		return "", err
	}
	for _, l := range list {
		if l.Dir == top || realOf(l.Dir) == top {
			return l.Entry, nil
		}
	}
	return "", fmt.Errorf("%s %w: %s has no entry for it", top, ErrReplaced, common)
}

// A Linked is a linked worktree of a repository, as its entry there has it; its directory may be gone.
type Linked struct {
	Entry string // git's own directory for it
	Dir   string
}

// LinkedTo lists the linked worktrees of a repository, without asking git.
func LinkedTo(common string) (list []Linked, err error) {
	names, err := os.ReadDir(filepath.Join(common, "worktrees"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range names {
		entry := filepath.Join(common, "worktrees", e.Name())
		to, err := readPath(filepath.Join(entry, "gitdir"))
		if err != nil {
			continue // another git may be writing it
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(entry, to)
		}
		list = append(list, Linked{entry, filepath.Dir(to)})
	}
	return list, nil
}

// Head returns what it has checked out, as git writes it there: "ref: NAME", or a commit.
func (l Linked) Head() string {
	head, _ := readPath(filepath.Join(l.Entry, "HEAD")) // what can't be read is nothing
	return head
}

// Changed counts the files in it that are not committed, up to a limit. No program is started that the worktree names.
func (l Linked) Changed(ctx context.Context, common string, limit int) (int, error) {
	if _, err := os.Lstat(l.Dir); err != nil {
		return 0, err
	}
	return git.Pin(realOf(l.Dir), l.Entry, common).Dirty(ctx, limit)
}

// movedTo returns the worktree as one of a repository that was moved: nothing is left where it was, and in its
// new place it has the worktree's entry. What the move has broken is repaired.
func (w Worktree) movedTo(ctx context.Context, h home.Dir, r git.Repo) (Worktree, error) {
	if w.Agent == "" || !w.Lost() || w.Repo == r.Common {
		return w, nil
	}
	top := realOf(w.Dir)
	entry, err := entryOf(r.Common, top)
	if err != nil {
		return w, nil // another one
	}
	if to, err := Link(top); err == nil && to == filepath.Join(w.Repo, "worktrees", filepath.Base(entry)) {
		if _, err := r.Act(makeTime).Run(ctx, 4096, "worktree", "repair"); err != nil {
			return w, fmt.Errorf("%s: git worktree repair: %w", r.Top, err)
		}
	}
	w.Repo, w.Main = r.Common, r.Top
	return w, w.save(h)
}

// Lost reports whether the worktree's repository is no longer where it was.
func (w Worktree) Lost() bool {
	_, err := os.Stat(w.Repo)
	return errors.Is(err, fs.ErrNotExist)
}

// Found adds to an error about a worktree what to do if its repository was moved.
func (w Worktree) Found(err error) error {
	if !w.Lost() {
		return err
	}
	return advice.With(err, "if the repository was moved, `netsky agent %s --dir DIR` with its new directory finds the work again", w.Agent)
}

// leadsTo checks that a git in the directory finds the entry.
func leadsTo(top, entry string) error {
	to, err := Link(top)
	switch {
	case errors.Is(err, fs.ErrNotExist): // the error must not say that the directory is gone
		return errors.New("it has no .git")
	case err != nil:
		return err
	case to != entry && realOf(to) != realOf(entry):
		return fmt.Errorf("its .git leads to %s", to)
	}
	return nil
}

// Link returns where the .git of a worktree leads. Whoever works there can write it. The error matches
// fs.ErrNotExist if there is none.
func Link(top string) (entry string, err error) {
	name := filepath.Join(top, ".git")
	info, err := os.Lstat(name)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", errors.New("its .git is no file")
	}
	text, err := readPath(name)
	to, ok := strings.CutPrefix(text, "gitdir: ")
	if err != nil || !ok {
		return "", errors.Join(errors.New("its .git names no repository"), err)
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(top, to)
	}
	return to, nil
}

// readPath reads a file of one path.
func readPath(name string) (string, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // should somebody put a pipe there
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 16<<10))
	return strings.TrimSuffix(string(text), "\n"), err
}
