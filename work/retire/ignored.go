package retire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"netsky/work/git"
)

// ignored returns what git ignores in the worktree and is no copy of a file in the owner's
// directory. Directories of which git ignores all are named as such.
func ignored(ctx context.Context, r git.Repo, main string) ([]string, error) {
	d := r.Look()
	// Only a directory that a pattern matches is ignored as such; another may hold ignored files alone.
	out, err := d.List(ctx, "status", "--porcelain", "-z", "--untracked-files=normal", "--ignored=matching", "--ignore-submodules=all")
	if err != nil {
		return nil, err
	}
	var dirs []string
	some := false
	for entry := range strings.SplitSeq(out, "\x00") {
		name, ok := strings.CutPrefix(entry, "!! ")
		if some = some || ok; ok && strings.HasSuffix(name, "/") {
			dirs = append(dirs, name)
		}
	}
	if !some {
		return nil, nil
	}
	if out, err = d.List(ctx, "ls-files", "--others", "--ignored", "--exclude-standard", "-z"); err != nil {
		return nil, err
	}
	files := strings.FieldsFunc(out, func(r rune) bool { return r == 0 })
	here, err := os.OpenRoot(r.Top)
	if err != nil {
		return nil, err
	}
	defer here.Close()
	there, err := os.OpenRoot(main)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		defer there.Close()
	}
	var found []string
	seen := make(map[string]bool)
	for _, name := range files {
		if there != nil && same(here, there, name) {
			continue
		}
		shown := name
		if i := slices.IndexFunc(dirs, func(dir string) bool { return strings.HasPrefix(name, dir) }); i >= 0 {
			shown = dirs[i]
		}
		if shown = strings.ToValidUTF8(shown, "\ufffd"); !seen[shown] {
			seen[shown] = true
			found = append(found, shown)
		}
	}
	return found, nil
}

// same reports whether both have the same file, or link, by that name.
func same(here, there *os.Root, name string) bool {
	a, err1 := here.Lstat(name)
	b, err2 := there.Lstat(name)
	if err1 != nil || err2 != nil || a.Mode().Type() != b.Mode().Type() {
		return false
	}
	if a.Mode()&fs.ModeSymlink != 0 {
		x, err1 := here.Readlink(name)
		y, err2 := there.Readlink(name)
		return err1 == nil && err2 == nil && x == y
	}
	if !a.Mode().IsRegular() || a.Size() != b.Size() {
		return false
	}
	x, err1 := here.Open(name)
	if err1 != nil {
		return false
	}
	defer x.Close()
	y, err2 := there.Open(name)
	if err2 != nil {
		return false
	}
	defer y.Close()
	return equal(x, y)
}

func equal(x, y io.Reader) bool {
	const step = 64 << 10
	a, b := make([]byte, step), make([]byte, step)
	for {
		n, err1 := io.ReadFull(x, a)
		m, err2 := io.ReadFull(y, b)
		if n != m || !bytes.Equal(a[:n], b[:m]) {
			return false
		}
		if err1 != nil || err2 != nil {
			return (err1 == io.EOF || err1 == io.ErrUnexpectedEOF) && (err2 == io.EOF || err2 == io.ErrUnexpectedEOF)
		}
	}
}
