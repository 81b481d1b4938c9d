package tree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"netsky/work/git"
)

// IncludeFile names, by patterns as in .gitignore, the ignored files that each worktree gets a copy
// of, such as .env.
const IncludeFile = ".worktreeinclude"

const (
	maxIncluded      = 5_000
	maxIncludedBytes = 1 << 30
)

// always are ignored files that agents' programs read, and that are copied unasked.
var always = []string{"CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "AGENTS.override.md", ".claude/settings.local.json", ".mcp.json"}

// A copying is what is copied into a new worktree.
type copying struct {
	files []string // relative to the root
	more  bool     // than are copied
}

// included returns the files of the repository's directory that a new worktree gets a copy of: they
// are ignored, and either named in .worktreeinclude or read by agents' programs.
func included(ctx context.Context, r git.Repo) (c copying, err error) {
	d := r.Look()
	var names []string
	if info, err := os.Lstat(filepath.Join(r.Top, IncludeFile)); err == nil && info.Mode().IsRegular() {
		out, err := d.List(ctx, "ls-files", "--others", "--ignored", "--exclude-from="+IncludeFile, "-z")
		if err != nil {
			return c, fmt.Errorf("%s: %w", IncludeFile, err)
		}
		names = strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	}
	for dir := range above(r.Sub) {
		for _, name := range always {
			name = filepath.Join(dir, name)
			if info, err := os.Lstat(filepath.Join(r.Top, name)); err == nil && info.Mode().IsRegular() {
				names = append(names, name)
			}
		}
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == "" })
	if len(names) == 0 {
		return c, nil
	}
	var out strings.Builder
	err = d.Stream(ctx, strings.NewReader(strings.Join(names, "\x00")), &out, nil, "check-ignore", "--stdin", "-z")
	if ee := new(exec.ExitError); err != nil && !(errors.As(err, &ee) && ee.ExitCode() == 1) { // 1: none is ignored
		return c, fmt.Errorf("git check-ignore: %w", err)
	}
	for name := range strings.SplitSeq(out.String(), "\x00") {
		if name == "" || slices.Contains(c.files, name) {
			continue
		}
		if len(c.files) == maxIncluded {
			c.more = true
			break
		}
		c.files = append(c.files, name)
	}
	return c, nil
}

// above yields a relative directory and the directories that contain it, "." last.
func above(sub string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for dir := filepath.Clean(sub); ; dir = filepath.Dir(dir) {
			if !yield(dir) || dir == "." {
				return
			}
		}
	}
}

// copyIncluded copies the included files. One that is in the worktree already stays as it is.
func (w Worktree) copyIncluded(ctx context.Context, r git.Repo, notes *[]string) error {
	c, err := included(ctx, r)
	if err != nil {
		return err
	}
	if c.more {
		*notes = append(*notes, fmt.Sprintf("%s names more than %d files; the others were not copied", IncludeFile, maxIncluded))
	}
	from, err := os.OpenRoot(r.Top)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenRoot(w.Dir)
	if err != nil {
		return err
	}
	defer to.Close()
	left := int64(maxIncludedBytes)
	for _, name := range c.files {
		n, err := copyFile(from, to, name, left)
		if err != nil {
			*notes = append(*notes, fmt.Sprintf("%s was not copied: %v", name, err))
			continue
		}
		left -= n
	}
	return nil
}

var errTooLarge = errors.New("with the others it is larger than 1 GiB")

// copyFile copies one regular file with its permissions, or a link as a link. Neither root is
// left, whatever links there are.
func copyFile(from, to *os.Root, name string, limit int64) (int64, error) {
	info, err := from.Lstat(name)
	if err != nil {
		return 0, err
	}
	if err := to.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return 0, err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := from.Readlink(name)
		if err != nil {
			return 0, err
		}
		if err := to.Symlink(target, name); err != nil && !errors.Is(err, fs.ErrExist) {
			return 0, err
		}
		return 0, nil
	case !info.Mode().IsRegular():
		return 0, errors.New("it is no regular file")
	case info.Size() > limit:
		return 0, errTooLarge
	}
	in, err := from.Open(name)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if errors.Is(err, fs.ErrExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(out, io.LimitReader(in, limit))
	return n, errors.Join(err, out.Close())
}
