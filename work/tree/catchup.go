package tree

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"netsky/home"
	"netsky/work/git"
)

// catchUp moves a worktree in which nothing is the agent's own on to what is checked out in the
// repository now.
func (p *Placed) catchUp(ctx context.Context, h home.Dir, r git.Repo) error {
	base, head, err := r.Head(ctx)
	if err != nil {
		return err
	}
	own, err := p.Acting(ctx)
	if err != nil {
		return err
	}
	branch, at, err := own.Head(ctx)
	if err != nil || branch != p.Branch || at == head && base == p.Base {
		return err
	}
	dirty, err := own.Dirty(ctx, 1)
	if err != nil || dirty > 0 {
		return err
	}
	if _, err := own.Look().Run(ctx, 256, "merge-base", "--is-ancestor", at, head); err != nil {
		return nil // it has commits of its own
	}
	lost, err := Replaced(ctx, own.Look(), at, head)
	if err != nil {
		return err
	}
	if len(lost) > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("it stays at %.7s, as what is in %s would be lost: that is a file by now", at, git.Shown(lost[0])))
		return nil
	}
	if at != head {
		if _, err := own.Act(makeTime).Run(ctx, 4096, "merge", "--ff-only", "--no-overwrite-ignore", "--quiet", head); err != nil {
			p.Notes = append(p.Notes, fmt.Sprintf("it stays at %.7s, as git can't move it on: %v", at, err))
			return nil
		}
		p.Moved = head
	}
	p.Base, p.From, p.Main = base, head, r.Top
	return p.save(h)
}

// Replaced returns submodules that are files in another commit, and hold something where that git is: to
// check that commit out, git would remove all of it, whatever is changed there.
func Replaced(ctx context.Context, d git.Dir, from, to string) (dirs []string, err error) {
	out, err := d.List(ctx, "diff-tree", "-r", "-z", "--no-renames", "--raw", "--diff-filter=T", from, to)
	parts := strings.Split(out, "\x00")
	for i := 0; i+1 < len(parts); i += 2 {
		if strings.HasPrefix(parts[i], ":160000 ") && taken(filepath.Join(d.Path, parts[i+1])) {
			dirs = append(dirs, parts[i+1]+"/")
		}
	}
	return dirs, err
}

// taken reports whether there is anything in a submodule's place but an empty directory.
func taken(name string) bool {
	info, err := os.Lstat(name)
	if err != nil || !info.IsDir() {
		return err == nil
	}
	dir, err := os.Open(name)
	if err != nil {
		return true // it can't be told
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(1)
	return len(names) > 0
}
