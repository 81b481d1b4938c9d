package retire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"netsky/home"
	"netsky/work/git"
	"netsky/work/tree"
)

// nobody makes the commit that keeps dropped ones, always at the same time: the same ones, the same commit.
var nobody = []string{
	"GIT_AUTHOR_NAME=netsky", "GIT_AUTHOR_EMAIL=netsky", "GIT_AUTHOR_DATE=@0 +0000",
	"GIT_COMMITTER_NAME=netsky", "GIT_COMMITTER_EMAIL=netsky", "GIT_COMMITTER_DATE=@0 +0000",
}

// keepDropped keeps the commits that only the reflogs of the worktree and its branch, or its own refs,
// still know, which go with these: made on no branch, or left behind by a reset, an amendment or a rebase.
// So it does what was only staged in one whose directory is gone. They become the parents of one commit,
// which has a ref. head is the branch's commit; "" if the branch is gone.
func keepDropped(ctx context.Context, repo git.Dir, w tree.Worktree, head string) error {
	logs := []string{w.Branch}
	var known strings.Builder
	if entry, err := w.Entry(); err == nil {
		logs = append(logs, "worktrees/"+filepath.Base(entry)+"/HEAD")
		list, err := own(ctx, repo, entry)
		if err != nil {
			return err
		}
		known.WriteString(strings.Join(append(list, ""), "\n"))
	}
	for _, name := range logs {
		ge := new(git.Error)
		if _, err := repo.Run(ctx, 256, "reflog", "exists", name); errors.As(err, &ge) {
			continue
		}
		out, err := repo.List(ctx, "log", "-g", "--no-show-signature", "--format=%H", name, "--")
		if errors.As(err, &ge) { // its branch is gone
			out, err = logOf(filepath.Join(repo.Path, filepath.Dir(name), "logs", filepath.Base(name)))
		}
		if err != nil {
			return fmt.Errorf("the reflog of %s: %w", name, err)
		}
		known.WriteString(out)
	}
	if strings.TrimSpace(known.String()) == "" {
		return nil
	}
	out := &git.Head{Limit: 32 << 20}
	if err := repo.Stream(ctx, strings.NewReader(known.String()), out, nil, "rev-list", "--ignore-missing", "--parents", "--stdin", "--single-worktree", "--not", "--all"); err != nil {
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
	if len(list) == 0 {
		return nil
	}
	args := []string{"commit-tree", cmp.Or(head, list[0]) + "^{tree}", "-m", fmt.Sprintf("What %s had dropped: %d commits", w.Short(), len(list))}
	for _, name := range list {
		if !followed[name] {
			args = append(args, "-p", name)
		}
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

const maxLog = 256 << 20 // bytes of a reflog

// logOf reads the commits of a worktree's reflog.
func logOf(name string) (string, error) {
	text, err := home.ReadOwn(name, maxLog)
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		for _, commit := range strings.SplitN(line, " ", 3) {
			if hash(commit) && strings.Trim(commit, "0") != "" {
				b.WriteString(commit + "\n")
			}
		}
	}
	return b.String(), err
}

// own returns the commits that a worktree's own part of the repository leads to: what is checked out
// there, its own refs, and what an operation that is not finished has put away.
func own(ctx context.Context, repo git.Dir, entry string) (list []string, err error) {
	names := []string{"HEAD", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "MERGE_AUTOSTASH", "AUTO_MERGE"}
	_ = filepath.WalkDir(filepath.Join(entry, "refs"), func(path string, e fs.DirEntry, err error) error {
		if name, rerr := filepath.Rel(entry, path); err == nil && rerr == nil && !e.IsDir() {
			names = append(names, name)
		}
		return nil
	})
	for _, name := range []string{"rebase-merge/autostash", "rebase-apply/autostash"} {
		if text, err := home.ReadOwn(filepath.Join(entry, name), 4096); err == nil {
			names = append(names, strings.TrimSpace(string(text)))
		}
	}
	for _, name := range names {
		if !hash(name) {
			name = "worktrees/" + filepath.Base(entry) + "/" + name
		}
		commit, err := commitOf(ctx, repo, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if commit != "" {
			list = append(list, commit)
		}
	}
	if _, err := os.Lstat(filepath.Join(entry, "index")); err != nil {
		return list, nil
	}
	staged, err := stagedIn(ctx, repo, entry)
	if err != nil {
		return nil, fmt.Errorf("what is staged in %s: %w", entry, err)
	}
	for _, commit := range list {
		if tree, _ := repo.First(ctx, "rev-parse", commit+"^{tree}"); tree == staged {
			return list, nil
		}
	}
	d := repo
	d.Env = nobody
	args := []string{"commit-tree", staged, "-m", "What was staged"}
	if len(list) > 0 {
		args = append(args, "-p", list[0])
	}
	commit, err := d.First(ctx, args...)
	return append(list, commit), err
}

// hash reports whether a name is that of an object.
func hash(name string) bool {
	return len(name) >= 40 && strings.Trim(name, "0123456789abcdef") == ""
}

// stagedIn returns the tree of what is staged. Of a merge that is not finished, it has each side.
func stagedIn(ctx context.Context, repo git.Dir, entry string) (string, error) {
	d := repo
	d.Env = []string{"GIT_INDEX_FILE=" + filepath.Join(entry, "index")}
	out, err := d.List(ctx, "ls-files", "--stage", "-z")
	if err != nil {
		return "", err
	}
	var in strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if info, name, ok := strings.Cut(line, "\t"); ok {
			what, stage := info[:len(info)-2], info[len(info)-1:]
			if stage != "0" {
				name += "~" + stage
			}
			in.WriteString(what + " 0\t" + name + "\x00")
		}
	}
	d.Env = []string{"GIT_INDEX_FILE=" + filepath.Join(entry, "netsky-kept")}
	if err := d.Stream(ctx, strings.NewReader(in.String()), nil, nil, "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	return d.First(ctx, "write-tree", "--missing-ok")
}
