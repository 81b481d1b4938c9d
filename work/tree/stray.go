package tree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"netsky/agent"
	"netsky/home"
	"netsky/work/git"
)

// maxStrays bounds the file of an agent's strays, in bytes: a line for each file that its program has changed in the
// owner's directory, from there, and for each other worktree in which it was, git's own directory for that.
const maxStrays = 64 << 10

// strays returns what is noted of an agent.
func strays(h home.Dir, id agent.ID) (files, entries []string, err error) {
	data, err := h.ReadFile(home.StrayFile(id), maxStrays)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSuffix(line, "\n"); filepath.IsAbs(line) {
			entries = append(entries, line)
		} else if line != "" {
			files = append(files, line)
		}
	}
	return files, entries, err
}

func note(h home.Dir, id agent.ID, line string) error {
	files, entries, err := strays(h, id)
	if err != nil || slices.Contains(files, line) || slices.Contains(entries, line) || strings.ContainsAny(line, "\n\x00") {
		return err
	}
	f, err := h.OpenAppend(home.StrayFile(id))
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// worksIn returns the agent's worktree if that is where it works, and not the owner's directory.
func worksIn(h home.Dir, id agent.ID) (w Worktree, ok bool, err error) {
	w, err = Load(h, id)
	if errors.Is(err, fs.ErrNotExist) {
		return w, false, nil
	}
	la, lerr := h.LoadLaunch(id)
	return w, err == nil && lerr == nil && Within(w.Dir, la.Dir), err
}

// NoteStray notes that an agent's program has changed a file, if that is in the owner's directory that the agent
// has a worktree of.
func NoteStray(h home.Dir, id agent.ID, name string) error {
	w, ok, err := worksIn(h, id)
	if !ok || err != nil || !filepath.IsAbs(name) {
		return err
	}
	name = filepath.Join(realOf(filepath.Dir(name)), filepath.Base(name))
	main := realOf(w.Main)
	if Within(realOf(w.Dir), name) || !Within(main, name) || topOf(filepath.Dir(name)) != main {
		return nil
	}
	rel, err := filepath.Rel(main, name)
	if err != nil {
		return err
	}
	return note(h, id, rel)
}

// NoteDir notes that an agent's program is in a directory, if that is in another linked worktree of its repository.
func NoteDir(h home.Dir, id agent.ID, dir string) error {
	w, ok, err := worksIn(h, id)
	if !ok || err != nil || !filepath.IsAbs(dir) || Within(w.Dir, dir) {
		return err
	}
	top := topOf(realOf(dir))
	entry, err := Link(top)
	if err != nil || top == realOf(w.Dir) || realOf(filepath.Dir(filepath.Dir(entry))) != realOf(w.Repo) {
		return nil // no worktree, or another repository's
	}
	return note(h, id, realOf(entry))
}

// topOf returns the nearest directory that has a .git, at or above one; "/" if there is none.
func topOf(dir string) string {
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			break
		}
	}
	return dir
}

// Added returns git's own directories for the other worktrees that an agent has added, or was in. Those of other
// repositories may be among them.
func Added(h home.Dir, id agent.ID) []string {
	_, entries, _ := strays(h, id) // what can't be read is not known
	return entries
}

// Strays returns the files of those noted that are changed in the owner's directory and not committed.
func (w Worktree) Strays(ctx context.Context, h home.Dir) (names []string, err error) {
	noted, _, err := strays(h, w.Agent)
	if len(noted) == 0 || err != nil {
		return nil, err
	}
	d := git.Dir{Path: w.Main, Env: []string{"GIT_LITERAL_PATHSPECS=1"}}
	args := []string{"status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=all", "--"}
	out, err := d.List(ctx, append(args, noted...)...)
	for entry := range strings.SplitSeq(out, "\x00") {
		if len(entry) > 3 {
			names = append(names, entry[3:])
		}
	}
	return names, err
}

// WorksAt returns the agent's worktree if that is where it works, and git finds no other repository from a directory in
// it: none with a .git, and none without.
func WorksAt(h home.Dir, id agent.ID, dir string) (w Worktree, ok bool) {
	w, ok, err := worksIn(h, id)
	if !ok || err != nil || !filepath.IsAbs(dir) {
		return w, false
	}
	dir = realOf(dir)
	top := topOf(dir)
	for ; dir != top; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, "HEAD")); !errors.Is(err, fs.ErrNotExist) {
			return w, false
		}
	}
	return w, top == realOf(w.Dir)
}
