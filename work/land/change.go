package land

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"netsky/work/git"
)

// A change is one file that differs between the two commits of a move.
type change struct {
	name    string
	was, is string // the blobs, "" for none
	mode    string // of the new one, as git writes it
}

// changes lists the files that differ, but for submodules, for files that a sparse checkout leaves out, and
// for those that git was told not to look at: it writes none of these.
func (m move) changes(ctx context.Context) (list []change, err error) {
	r, err := m.tree()
	if err != nil {
		return nil, err
	}
	tags, err := r.Look().List(ctx, "ls-files", "-v", "-z")
	if err != nil {
		return nil, err
	}
	left := make(map[string]bool)
	for line := range strings.SplitSeq(tags, "\x00") {
		if tag, name, ok := strings.Cut(line, " "); ok && (tag == "S" || tag == "s" || strings.ToLower(tag) == tag) {
			left[name] = true
		}
	}
	out, err := r.Look().List(ctx, "diff-tree", "-r", "-z", "--no-renames", "--raw", "--no-abbrev", m.From, m.To)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(out, "\x00")
	for i := 0; i+1 < len(parts); i += 2 {
		f := strings.Fields(parts[i]) // :mode mode blob blob letter
		if len(f) < 5 || f[0] == ":160000" || f[1] == "160000" {
			continue
		}
		if left[parts[i+1]] {
			continue
		}
		list = append(list, change{parts[i+1], blob(f[2]), blob(f[3]), f[1]})
	}
	return list, nil
}

// blob returns an object's name, "" for that of none.
func blob(name string) string {
	if strings.Trim(name, "0") == "" {
		return ""
	}
	return name
}

// Whose a file is.
const (
	isOld = iota
	isNew
	isOther
)

// state says which of the two commits' the file in the worktree is. One that git was writing when it
// was killed, so that it is the beginning of the new one, is the new one's.
func (c change) state(ctx context.Context, d git.Dir) (int, error) {
	path := filepath.Join(d.Path, c.name)
	info, err := os.Lstat(path)
	has := ""
	switch {
	case !placed(d.Path, c.name), errors.Is(err, fs.ErrNotExist), err == nil && info.IsDir():
	case err != nil:
		return 0, err
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		if err != nil {
			return 0, err
		}
		if has, err = hashOf(ctx, d, target); err != nil {
			return 0, err
		}
	case !info.Mode().IsRegular(): // git would wait for a pipe's other end
		return isOther, nil
	default:
		if has, err = d.First(ctx, "hash-object", "--", c.name); err != nil {
			return 0, err
		}
	}
	switch {
	case has == c.was && (has != c.is || modeOf(info) != c.mode):
		return isOld, nil
	case has == c.is, has == "": // git removes a file before it writes it anew
		return isNew, nil
	}
	if info.Mode().IsRegular() && c.is != "" && info.Size() <= maxConflict {
		data, err := os.ReadFile(path)
		if err != nil {
			return 0, err
		}
		if whole, err := d.Run(ctx, maxConflict, "cat-file", "blob", c.is); err == nil && strings.HasPrefix(whole, string(data)) {
			return isNew, nil
		}
	}
	return isOther, nil
}

// placed reports whether what leads to a file are directories. Behind a link, or where a file is in the
// way, there is none of the worktree's.
func placed(dir, name string) bool {
	for at := filepath.Dir(name); at != "."; at = filepath.Dir(at) {
		if info, err := os.Lstat(filepath.Join(dir, at)); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// modeOf returns a file's mode as git writes it.
func modeOf(info fs.FileInfo) string {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return "120000"
	case info.Mode()&0o100 != 0:
		return "100755"
	}
	return "100644"
}

// hashOf returns the name of the blob with that text.
func hashOf(ctx context.Context, d git.Dir, text string) (string, error) {
	out := &git.Head{Limit: 256}
	err := d.Stream(ctx, strings.NewReader(text), out, nil, "hash-object", "--stdin", "--no-filters")
	return strings.TrimSpace(out.String()), err
}
