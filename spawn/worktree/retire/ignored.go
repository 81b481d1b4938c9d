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

	"netsky/spawn/worktree/git"
)

// ignored returns what git ignores in the worktree and is no copy of a file in the owner's
// directory. Directories of which git ignores all are named as such.
func ignored(ctx context.Context, r git.Repo, main string) ([]string, error) {
	d := r.Look()
	list := func(more ...string) ([]string, error) {
		out, err := d.List(ctx, append([]string{"ls-files", "--others", "--ignored", "--exclude-standard", "-z"}, more...)...)
		return strings.FieldsFunc(out, func(r rune) bool { return r == 0 }), err
	}
	groups, err := list("--directory")
	if err != nil || len(groups) == 0 {
		return nil, err
	}
	files, err := list()
	if err != nil {
		return nil, err
	}
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
	for _, name := range files {
		if there != nil && same(here, there, name) {
			continue
		}
		shown := name
		if i := slices.IndexFunc(groups, func(g string) bool { return strings.HasSuffix(g, "/") && strings.HasPrefix(name, g) }); i >= 0 {
			shown = groups[i]
		}
		if shown = strings.ToValidUTF8(shown, "\ufffd"); !slices.Contains(found, shown) {
			found = append(found, shown)
		}
		if len(found) == maxNamed {
			break
		}
	}
	return found, nil
}

const maxNamed = 100

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
