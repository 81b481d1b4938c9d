package land

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"netsky/work/git"
)

// lacking names the submodules that the branch moves to commits which the owner's copy of them lacks:
// if its agent has not pushed them, nobody else can check them out. One of which the owner has no copy is not
// named, and what can't be told is left out.
func (m Merge) lacking(ctx context.Context, r git.Repo) (notes []string) {
	d := r.Look()
	out, err := d.List(ctx, "diff-tree", "-r", "-z", "--no-renames", "--raw", "--diff-filter=AMT", m.Base, m.Head)
	if err != nil {
		return nil
	}
	moved := make(map[string]string) // commits, by path
	parts := strings.Split(out, "\x00")
	for i := 0; i+1 < len(parts); i += 2 {
		if f := strings.Fields(parts[i]); len(f) > 3 && f[1] == "160000" {
			moved[parts[i+1]] = f[3]
		}
	}
	if len(moved) == 0 {
		return nil
	}
	out, err = d.List(ctx, "config", "-z", "--blob", m.Head+":.gitmodules", "--get-regexp", `^submodule\..*\.path$`)
	if err != nil {
		return nil
	}
	for entry := range strings.SplitSeq(out, "\x00") {
		key, path, _ := strings.Cut(entry, "\n")
		commit := moved[path]
		name := strings.TrimSuffix(strings.TrimPrefix(key, "submodule."), ".path")
		copied := filepath.Join(r.Common, "modules", name)
		if _, err := os.Stat(copied); err != nil || commit == "" || !filepath.IsLocal(name) {
			continue
		}
		_, err := git.Dir{Path: copied, Env: []string{"GIT_DIR=" + copied}}.First(ctx, "cat-file", "-e", commit+"^{commit}")
		if ge := new(git.Error); errors.As(err, &ge) {
			notes = append(notes, fmt.Sprintf("the submodule %s is at %s, which your copy of it lacks: unless the agent has pushed that commit, nobody else can check it out", git.Shown(path), short(commit)))
		}
	}
	return notes
}
