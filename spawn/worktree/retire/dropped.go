package retire

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"netsky/spawn/worktree"
	"netsky/spawn/worktree/git"
)

// nobody makes the commit that keeps dropped ones, always at the same time: the same ones, the same commit.
var nobody = []string{
	"GIT_AUTHOR_NAME=netsky", "GIT_AUTHOR_EMAIL=netsky", "GIT_AUTHOR_DATE=@0 +0000",
	"GIT_COMMITTER_NAME=netsky", "GIT_COMMITTER_EMAIL=netsky", "GIT_COMMITTER_DATE=@0 +0000",
}

// keepDropped keeps the commits that only the reflogs of the worktree and its branch still know, which go
// with these: made on no branch, or left behind by a reset, an amendment or a rebase. They become the
// parents of one commit, which has a ref.
func keepDropped(ctx context.Context, repo git.Dir, w worktree.Worktree, head string) error {
	logs := []string{w.Branch}
	if entry, err := w.Entry(); err == nil {
		logs = append(logs, "worktrees/"+filepath.Base(entry)+"/HEAD")
	}
	var known strings.Builder
	for _, name := range logs {
		ge := new(git.Error)
		if _, err := repo.Run(ctx, 256, "reflog", "exists", name); errors.As(err, &ge) {
			continue
		}
		out, err := repo.List(ctx, "log", "-g", "--no-show-signature", "--format=%H", name, "--")
		if err != nil {
			return fmt.Errorf("the reflog of %s: %w", name, err)
		}
		known.WriteString(out)
	}
	if known.Len() == 0 {
		return nil
	}
	out := &git.Head{Limit: 32 << 20}
	if err := repo.Stream(ctx, strings.NewReader(known.String()), out, nil, "rev-list", "--ignore-missing", "--parents", "--stdin", "--not", "--all"); err != nil {
		return fmt.Errorf("git rev-list: %w", err)
	}
	var list []string
	followed := make(map[string]bool)
	for line := range strings.Lines(out.String()) {
		names := strings.Fields(line)
		list = append(list, names[0])
		for _, parent := range names[1:] {
			followed[parent] = true
		}
	}
	args := []string{"commit-tree", head + "^{tree}", "-m", fmt.Sprintf("What %s had dropped: %d commits", w.Short(), len(list))}
	for _, name := range list {
		if !followed[name] {
			args = append(args, "-p", name)
		}
	}
	if len(list) == 0 {
		return nil
	}
	d := repo
	d.Env = nobody
	kept, err := d.First(ctx, args...)
	if err == nil {
		_, err = repo.Run(ctx, 4096, "update-ref", "--no-deref", "-m", "netsky work retire", Refs+Name(w.Agent, kept), kept)
	}
	if err != nil {
		return fmt.Errorf("the commits that %s had dropped: %w", w.Short(), err)
	}
	return nil
}
