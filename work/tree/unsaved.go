// This file reports work in git repositories that exists nowhere else. It changes
// nothing, and runs no program that a repository chooses. A file that only such a filter makes the
// same as what is committed counts as changed.

package tree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"netsky/work/git"
)

// maxEntries limits a walk. Anything larger is not judged.
const maxEntries = 5_000_000

// An Unsaved is a directory whose removal would lose work.
type Unsaved struct {
	Dir string
	Why string // completes "it …"
}

func (u Unsaved) String() string { return u.Dir + ": " + u.Why }

// Find looks below root, on root's own file system and without following links, for git
// repositories with work that exists nowhere else: changes and new files that are not
// committed, stashes, and commits that are on no remote. For a linked worktree whose
// repository is elsewhere, commits count if no other branch has them.
//
// Below each directory of loose, anything outside a repository counts as such work too; an
// empty directory does not.
//
// A repository that git can't read and an incomplete walk are reported as well: only an
// empty list and no error mean that nothing is lost.
//
// A file that a repository ignores counts, and so does one whose changes git was told to
// ignore; ignored directories do not, and are listed, with a slash at the end.
func Find(ctx context.Context, root string, loose ...string) (found []Unsaved, ignored []string, err error) {
	root = filepath.Clean(root)
	info, err := os.Lstat(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	w := walk{ctx: ctx, root: root, dev: device(info)}
	if real, err := filepath.EvalSymlinks(root); err == nil {
		w.real = real
	}
	for _, dir := range loose {
		w.loose = append(w.loose, filepath.Clean(dir))
	}
	err = w.dir(root, area{})
	return w.found, w.ignoredDirs, err
}

type walk struct {
	ctx   context.Context // of this one call
	root  string
	real  string // root without links
	dev   uint64
	loose []string
	seen  int
	found []Unsaved

	ignoredDirs []string
}

// An area is the part of the tree that a directory is in.
type area struct {
	loose string // the directory of loose that it is in, "" if in none
	repo  bool   // in a repository
}

func device(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev)
	}
	return 0
}

func (w *walk) add(dir, format string, args ...any) {
	w.found = append(w.found, Unsaved{dir, fmt.Sprintf(format, args...)})
}

// dir checks one directory and everything below it.
func (w *walk) dir(dir string, in area) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if slices.Contains(w.loose, dir) {
		in.loose = dir
	}
	var subs []string
	file, git, head, objects, refs := "", false, false, false, false
	err := each(dir, func(e fs.DirEntry) error {
		if w.seen++; w.seen > maxEntries {
			return fmt.Errorf("%s: more than %d files, too many to check", w.root, maxEntries)
		}
		name := e.Name()
		switch name {
		case ".git":
			git = true
			return nil
		case "HEAD":
			head = !e.IsDir()
		case "objects":
			objects = e.IsDir()
		case "refs":
			refs = e.IsDir()
		}
		if e.IsDir() {
			subs = append(subs, name)
		} else if file == "" {
			file = name
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // gone meanwhile
	}
	if err != nil {
		return err
	}
	bare := !git && head && objects && refs
	if git || bare {
		in.repo = true
		if err := w.repository(dir, bare); err != nil {
			return err
		}
		if bare {
			return nil
		}
	}
	if in.loose != "" && !in.repo {
		switch {
		case file != "":
			w.add(in.loose, "holds %s, which is in no git repository", filepath.Join(dir, file)[len(in.loose)+1:])
			return nil // one of them is enough
		case len(subs) == 0 && dir != in.loose:
			w.add(in.loose, "holds %s, which is in no git repository", dir[len(in.loose)+1:])
		}
	}
	for _, name := range subs {
		sub := filepath.Join(dir, name)
		info, err := os.Lstat(sub)
		if err != nil || !info.IsDir() || device(info) != w.dev {
			continue // gone, replaced, or another file system, which stays
		}
		if err := w.dir(sub, in); err != nil {
			return err
		}
	}
	return nil
}

// each calls f for the entries of a directory, some at a time.
func each(dir string, f func(fs.DirEntry) error) error {
	d, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		list, err := d.ReadDir(512)
		for _, e := range list {
			if err := f(e); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// repository asks git about the repository or worktree in dir.
func (w *walk) repository(dir string, bare bool) error {
	g := git.Dir{Path: dir, Doubted: []string{git.Local, git.Own}}
	common, err := gitPath(w.ctx, g, "--git-common-dir")
	if err != nil {
		return w.unread(dir, err)
	}
	own, err := gitPath(w.ctx, g, "--git-dir")
	if err != nil {
		return w.unread(dir, err)
	}
	if !bare {
		changed, err := g.First(w.ctx, "status", "--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=dirty") // they are looked at by themselves
		if err != nil {
			return w.unread(dir, err)
		}
		if changed != "" {
			w.add(dir, "holds work that is not committed: %s", strings.TrimSpace(changed))
			return nil
		}
		file, err := w.ignored(g)
		if err != nil {
			return w.unread(dir, err)
		}
		if file != "" {
			w.add(dir, "holds %s, which git ignores and which exists nowhere else", file)
			return nil
		}
		if file, err = Hidden(w.ctx, g); err != nil {
			return w.unread(dir, err)
		}
		if file != "" {
			w.add(dir, "holds %s, which is changed and which git was told not to look at", file)
			return nil
		}
	}
	if !w.inside(common) {
		return w.linked(g, own != common)
	}
	if stash, err := g.First(w.ctx, "for-each-ref", "--count=1", "--format=%(refname)", "refs/stash"); err != nil {
		return w.unread(dir, err)
	} else if stash != "" {
		w.add(dir, "holds stashed work (git stash list)")
		return nil
	}
	commit, err := g.First(w.ctx, "rev-list", "--max-count=1", "--exclude=refs/prefetch/*", "--all", "--not", "--remotes")
	if err != nil {
		return w.unread(dir, err)
	}
	if commit != "" {
		w.add(dir, "holds commits that are on no remote, such as %.12s", commit)
		return nil
	}
	return w.worktrees(g)
}

// ignored returns a file that git ignores, "" if there is none. It records ignored
// directories, which are mostly build or installation output.
func (w *walk) ignored(g git.Dir) (file string, err error) {
	list, err := g.List(w.ctx, "status", "--porcelain", "-z", "--untracked-files=normal", "--ignored=matching", "--ignore-submodules=all")
	if err != nil {
		return "", err
	}
	for entry := range strings.SplitSeq(list, "\x00") {
		name, ok := strings.CutPrefix(entry, "!! ")
		if !ok {
			continue
		}
		if strings.HasSuffix(name, "/") {
			w.ignoredDirs = append(w.ignoredDirs, filepath.Join(g.Path, name)+"/")
		} else if file == "" {
			file = name
		}
	}
	return file, nil
}

// maxHidden bounds the files that are compared one by one.
const maxHidden = 100

// linked checks a worktree whose repository stays where it is. Its commits stay, too; that
// no other branch has them suggests that they were not merged.
func (w *walk) linked(g git.Dir, worktree bool) error {
	if !worktree {
		return nil
	}
	if _, err := g.First(w.ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err != nil {
		return nil // no commit yet
	}
	args := []string{"rev-list", "--max-count=1", "HEAD", "--not", "--remotes"}
	if branch, err := g.First(w.ctx, "symbolic-ref", "--quiet", "--short", "HEAD"); err == nil && branch != "" {
		args = append(args, "--exclude="+branch)
	}
	commit, err := g.First(w.ctx, append(args, "--branches")...)
	if err != nil {
		return w.unread(g.Path, err)
	}
	if commit != "" {
		w.add(g.Path, "holds commits that are on no remote and no other branch, such as %.12s", commit)
	}
	return nil
}

// worktrees looks for worktrees elsewhere that depend on this repository.
func (w *walk) worktrees(g git.Dir) error {
	list, err := g.Run(w.ctx, 64<<10, "worktree", "list", "--porcelain")
	if err != nil {
		return w.unread(g.Path, err)
	}
	for line := range strings.Lines(list) {
		path, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "worktree ")
		if !ok || w.inside(path) {
			continue
		}
		if _, err := os.Lstat(path); err == nil {
			w.add(g.Path, "is the repository of the worktree %s", path)
			return nil
		}
	}
	return nil
}

// unread reports a repository that git can't read.
func (w *walk) unread(dir string, err error) error {
	if w.ctx.Err() != nil {
		return w.ctx.Err()
	}
	w.add(dir, "is a git repository that git can't read (%v)", err)
	return nil
}

// inside reports whether a path, which git gives without links, lies in root.
func (w *walk) inside(path string) bool {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	for _, root := range []string{w.root, w.real} {
		if root != "" && (path == root || strings.HasPrefix(path, root+"/")) {
			return true
		}
	}
	return false
}

// Hidden returns a changed file that git was told to treat as unchanged, or as not wanted
// in the worktree; "" if there is none.
func Hidden(ctx context.Context, g git.Dir) (string, error) {
	list, err := g.List(ctx, "ls-files", "-v", "-z")
	if err != nil {
		return "", err
	}
	compared := 0
	for entry := range strings.SplitSeq(list, "\x00") {
		if len(entry) < 3 || entry[0] != 'S' && (entry[0] < 'a' || entry[0] > 'z') {
			continue
		}
		name := entry[2:]
		info, err := os.Lstat(filepath.Join(g.Path, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // as in a sparse checkout
		}
		if compared++; compared > maxHidden {
			return "", fmt.Errorf("more than %d files that git was told to ignore changes in", maxHidden)
		}
		added, err := g.First(ctx, "rev-parse", "--verify", "--quiet", ":0:"+name) // "1:x" may be a name
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		if same, err := holdsBlob(ctx, g, name, added, info); err != nil || !same {
			return name, nil
		}
	}
	return "", nil
}

// holdsBlob reports whether a file is as that blob says. Git would wait for a pipe's writer, and follow a link.
func holdsBlob(ctx context.Context, g git.Dir, name, blob string, info fs.FileInfo) (bool, error) {
	switch {
	case info == nil:
		return false, nil
	case info.Mode().IsRegular():
		now, err := g.First(ctx, "hash-object", "--", name)
		return now == blob, err
	case info.Mode()&fs.ModeSymlink == 0:
		return false, nil
	}
	to, err := os.Readlink(filepath.Join(g.Path, name))
	if err != nil {
		return false, err
	}
	was, err := g.Run(ctx, len(to)+1, "cat-file", "blob", blob)
	return was == to, err
}

// gitPath returns a path of git's, made absolute.
func gitPath(ctx context.Context, g git.Dir, what string) (string, error) {
	path, err := g.First(ctx, "rev-parse", what)
	if err == nil && !filepath.IsAbs(path) {
		path = filepath.Join(g.Path, path)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return path, err
}
