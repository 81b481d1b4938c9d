// Package retire removes the worktrees and branches of agents whose work has landed, and finds what was
// removed.
//
// It removes nothing that is not committed, not landed, or ignored by git and no copy of netsky's, and
// there is no way to make it. The branch's last commit stays under refs/netsky/retired/, so that git
// keeps it and all before it; the commits that only reflogs knew are kept there as well. The branch is
// removed only if it is still at that commit.
//
// A crash leaves the worktree as it was, or renamed, or its record without it; the next Retire goes on
// from there. It does not know whether the agent runs: the caller makes sure that it does not.
package retire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"netsky/agent"
	"netsky/home"
	"netsky/store"
	"netsky/work/git"
	"netsky/work/record"
	"netsky/work/tree"
)

// Refs is where the commits stay.
const Refs = "refs/netsky/retired/"

// Name returns the name, below Refs, under which the agent's commit stays.
func Name(id agent.ID, commit string) string { return fmt.Sprintf("%s-%.12s", id, commit) }

// Options are what Retire needs beside the worktree.
type Options struct {
	Home home.Dir
	// Record keeps what has become of the worktree.
	Record func(context.Context, ...store.Op) error
	// Directories says that ignored directories go with it: the owner was told.
	Directories bool
}

// Retire removes the agent's worktree and branch. The commit stays under the returned ref; "" if
// the agent never had one.
func Retire(ctx context.Context, o Options, id agent.ID) (ref string, err error) {
	lock, err := o.Home.WaitLock(ctx, home.WorktreeLock(id), nil)
	if err != nil {
		return "", err
	}
	defer lock.Unlock()
	ctx = context.WithoutCancel(ctx)
	w, err := tree.Load(o.Home, id)
	if err != nil {
		return "", err
	}
	v, err := Judge(ctx, o.Home, w)
	if err == nil {
		err = v.Err(w, o.Directories)
	}
	if err != nil {
		return "", err
	}
	if ref, err = o.remove(ctx, w, v); err != nil {
		return "", err
	}
	if o.Record != nil {
		kept, what := "", w.Dir+" and the branch "+w.Short()
		if w.Away != nil {
			what = "what was brought of its work, " + w.Short()
		}
		if ref != "" {
			kept = "; " + ref + " keeps its last commit"
		}
		err = o.Record(ctx, record.SetWorktree(record.Worktree{Agent: id, Repo: w.Repo, Dir: w.Dir, Branch: w.Branch, Base: w.Base, State: record.Retired, Made: w.Made}),
			// A repeat after a crash is of the same worktree at the same commit.
			store.AddLog{Key: fmt.Sprintf("retired-%s-%d-%s", id, w.Made, v.head), Part: "work", Actor: id, Text: "removed " + what + kept})
		if errors.Is(err, store.ErrSpooled) {
			err = nil
		}
	}
	if rerr := tree.Forget(o.Home, id); rerr != nil {
		return ref, errors.Join(err, rerr)
	}
	return ref, err
}

func (o Options) remove(ctx context.Context, w tree.Worktree, v Verdict) (ref string, err error) {
	if v.orphaned {
		return "", o.sweep(ctx, w)
	}
	repo := git.Dir{Path: w.Repo, Acts: true}
	if v.head != "" {
		ref = Refs + Name(w.Agent, v.head)
		switch have, err := commitOf(ctx, repo, ref); {
		case err != nil:
			return "", err
		case have != "" && have != v.head:
			return "", fmt.Errorf("%s: is %s, not %s", ref, have, v.head)
		case have == "":
			if _, err := repo.Run(ctx, 4096, "update-ref", "--no-deref", "-m", "netsky work retire", ref, v.head, strings.Repeat("0", len(v.head))); err != nil {
				return "", fmt.Errorf("%s: %w", ref, err)
			}
		}
	}
	lock, err := o.Home.WaitLock(ctx, home.EntriesLock, nil)
	if err != nil {
		return "", err
	}
	defer lock.Unlock()
	others, listed, err := entries(ctx, repo, w)
	if err != nil {
		return "", err
	}
	if others != "" {
		return "", fmt.Errorf("%s: %w: %s is checked out in %s as well", w.Agent, ErrKept, w.Short(), others)
	}
	if err := keepDropped(ctx, repo, w, v.head); err != nil {
		return "", err
	}
	if err := o.setAside(ctx, w, asideOf(o.Home, w, v.head), listed); err != nil {
		return "", err
	}
	if listed {
		if _, err := repo.Run(ctx, 4096, "worktree", "remove", "--", w.Dir); err != nil {
			return "", fmt.Errorf("%s: git worktree remove: %w", w.Repo, err)
		}
	}
	if v.head != "" {
		if _, err := repo.Run(ctx, 4096, "update-ref", "--no-deref", "-m", "netsky work retire", "-d", w.Branch, v.head); err != nil {
			return "", fmt.Errorf("%s: it has moved meanwhile, so it stays; its worktree is gone, and the next start makes it again: %w", w.Short(), err)
		}
	}
	return ref, o.sweep(ctx, w)
}

// sweep removes the agent's directories that are set aside, this one's and those that a crash has left.
func (o Options) sweep(ctx context.Context, w tree.Worktree) error {
	h := o.Home
	list, err := os.ReadDir(h.Path(home.WorkDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range list {
		if rest, ok := strings.CutPrefix(e.Name(), aside+string(w.Agent)+"-"); ok && !strings.Contains(rest, "-") {
			if cerr := o.clean(ctx, h.Path(home.WorkDir, e.Name()), w, false); cerr != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w", h.Path(home.WorkDir, e.Name()), cerr))
				continue
			}
			err = errors.Join(err, os.RemoveAll(h.Path(home.WorkDir, e.Name())))
		}
	}
	return err
}

// aside begins the names of directories that are being removed.
const aside = ".retired-"

// asideOf is where the worktree is while it is removed.
func asideOf(h home.Dir, w tree.Worktree, head string) string {
	return h.Path(home.WorkDir, aside+Name(w.Agent, head))
}

// setAside renames the directory, so that nobody works in it any more, and looks again whether it holds
// nothing else. If it does, all is as before.
func (o Options) setAside(ctx context.Context, w tree.Worktree, aside string, listed bool) error {
	_, err := os.Lstat(w.Dir)
	_, aerr := os.Lstat(aside)
	here, before := err == nil, aerr == nil
	if here && before { // the next start after a crash made it again
		if err := o.clean(ctx, aside, w, false); err != nil {
			return fmt.Errorf("%s: is in the way: %w", aside, err)
		}
		if err := os.RemoveAll(aside); err != nil {
			return err
		}
	}
	switch {
	case here:
		if err := os.Rename(w.Dir, aside); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case !before: // deleted by hand, and nothing is left of it
		return nil
	}
	if err := o.clean(ctx, aside, w, listed); err != nil {
		return errors.Join(fmt.Errorf("%s: %w: %w", w.Agent, ErrKept, err), os.Rename(aside, w.Dir))
	}
	return nil
}

// clean fails if a directory that was set aside holds anything but what is committed. git is told
// where all is: it would take note of the new name. listed says that git still has an entry for it.
func (o Options) clean(ctx context.Context, aside string, w tree.Worktree, listed bool) error {
	entry, err := tree.Link(aside)
	if errors.Is(err, fs.ErrNotExist) { // it was being removed
		return nil
	} else if err != nil {
		return fmt.Errorf("it is no worktree of git's any more: %w", err)
	}
	_, gone := os.Lstat(entry)
	switch forgotten := errors.Is(gone, fs.ErrNotExist); {
	case !within(entry, filepath.Join(w.Repo, "worktrees")), forgotten && listed:
		return fmt.Errorf("its .git leads to %s", entry)
	case forgotten: // git forgets it only after this
		return nil
	}
	r := git.Pin(aside, entry, w.Repo)
	out, err := r.Look().First(ctx, "status", "--porcelain", "-z", "--untracked-files=all", "--ignore-submodules=dirty")
	if err != nil {
		return err
	}
	if out != "" {
		return fmt.Errorf("something was written there meanwhile: %s", git.Shown(strings.Trim(out, "\x00 ")))
	}
	if at, _, err := r.Head(ctx); err != nil || at != w.Branch {
		return errors.Join(fmt.Errorf("%s is no longer what is checked out there", w.Short()), err)
	}
	v := Verdict{}
	if err = v.unfinished(ctx, r, w); err == nil && len(v.reasons(o.Directories)) > 0 {
		err = errors.New(strings.Join(v.reasons(o.Directories), "; "))
	}
	return err
}

// within says whether a file is in a directory itself. Either may be gone.
func within(name, dir string) bool {
	of := filepath.Dir(name)
	if of == dir {
		return true
	}
	a, aerr := filepath.EvalSymlinks(of)
	b, berr := filepath.EvalSymlinks(dir)
	return aerr == nil && berr == nil && a == b
}

// entries returns another worktree in which the branch is checked out, and whether git has an entry
// for this one.
func entries(ctx context.Context, repo git.Dir, w tree.Worktree) (other string, listed bool, err error) {
	out, err := repo.List(ctx, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return "", false, err
	}
	dir := w.Dir
	if parent, err := filepath.EvalSymlinks(filepath.Dir(w.Dir)); err == nil { // as git writes it
		dir = filepath.Join(parent, filepath.Base(w.Dir))
	}
	for entry := range strings.SplitSeq(out, "\x00\x00") {
		lines := strings.Split(entry, "\x00")
		at, _ := strings.CutPrefix(lines[0], "worktree ")
		switch {
		case at == dir:
			listed = true
		case slices.Contains(lines, "branch "+w.Branch):
			other = at
		}
	}
	return other, listed, nil
}
