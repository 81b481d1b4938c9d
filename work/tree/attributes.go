package tree

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"netsky/work/git"
)

// Attributed returns a git that merges by the .gitattributes of a commit, whatever is checked out where d is:
// git reads them from files. Further lines count more than what is in there. done removes those files.
func Attributed(ctx context.Context, d git.Dir, commit string, further ...string) (at git.Dir, done func(), err error) {
	done = func() {}
	if len(further) == 0 {
		if _, err := d.Run(ctx, 256, "diff-index", "--quiet", commit, "--", ":(top,glob)**/.gitattributes"); err == nil {
			return d, done, nil
		}
	}
	dir, err := d.Run(ctx, 16<<10, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return d, done, err
	}
	list, err := d.List(ctx, "ls-tree", "-r", "-z", "--full-tree", commit)
	if err != nil {
		return d, done, err
	}
	tree, err := os.MkdirTemp("", "netsky-attributes-")
	if err != nil {
		return d, done, err
	}
	done = func() { _ = os.RemoveAll(tree) }
	defer func() {
		if err != nil {
			done()
		}
	}()
	more := "\n" + strings.Join(further, "\n") + "\n"
	if err = os.WriteFile(filepath.Join(tree, ".gitattributes"), []byte(more), 0o600); err != nil {
		return d, done, err
	}
	for line := range strings.SplitSeq(list, "\x00") {
		info, name, _ := strings.Cut(line, "\t")
		f := strings.Fields(info)
		if filepath.Base(name) != ".gitattributes" || !strings.HasPrefix(info, "100") || len(f) != 3 || !filepath.IsLocal(name) { // a tree can hold ".."
			continue
		} else if err = attributes(ctx, d, f[2], filepath.Join(tree, name), more); err != nil {
			return d, done, err
		}
	}
	at = d
	at.Path = tree
	at.Env = append(slices.Clip(d.Env), "GIT_DIR="+strings.TrimSuffix(dir, "\n"), "GIT_WORK_TREE="+tree)
	return at, done, nil
}

func attributes(ctx context.Context, d git.Dir, blob, name, more string) error {
	text, err := d.Run(ctx, 1<<20, "cat-file", "blob", blob)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(name), 0o700)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text+more), 0o600)
}
