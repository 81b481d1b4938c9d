package retire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"netsky/home"
	"netsky/internal/advice"
	"netsky/work/git"
	"netsky/work/merge"
	"netsky/work/tree"
)

// A Verdict says whether a worktree can be retired without losing anything.
type Verdict struct {
	Reasons []string // why not, each a sentence about the agent's work
	// Ignored are files and directories, with a slash, that git ignores and that are no copies of
	// what is in the owner's directory: no commit has them.
	Ignored []string

	head     string // the branch's commit; "" if it is gone
	orphaned bool   // the repository is gone as well
}

// Judge looks at the agent's worktree. It changes nothing.
func Judge(ctx context.Context, h home.Dir, w tree.Worktree) (v Verdict, err error) {
	no := func(format string, args ...any) { v.Reasons = append(v.Reasons, fmt.Sprintf(format, args...)) }
	_, serr := os.Lstat(w.Dir)
	gone := errors.Is(serr, fs.ErrNotExist)
	if _, err := os.Stat(w.Repo); errors.Is(err, fs.ErrNotExist) {
		if v.orphaned = true; !gone {
			no("its repository %s is gone, so git can't tell what else is in %s; move that away", w.Repo, w.Dir)
		}
		return v, nil
	}
	repo := git.Dir{Path: w.Repo}
	if v.head, err = commitOf(ctx, repo, w.Branch); err != nil {
		return v, fmt.Errorf("%s: %w", w.Repo, err)
	}
	if names, err := os.ReadDir(w.Dir); err == nil && len(names) == 0 && !w.Ready {
		gone = true // git could not make it
	}
	switch {
	case !w.Ready && (!gone || v.head != "" && v.head != w.From):
		return v, advice.With(fmt.Errorf("%s: netsky was killed while it made %s", w.Agent, w.Dir), "`netsky up %s` makes it whole first", w.Agent)
	case !w.Ready || gone && v.head == "":
		return v, nil // nobody has worked in it, or nothing is left of it
	}
	fc := merge.New(h)
	defer fc.Close()
	look, err := fc.Look(ctx, w.Agent)
	if err != nil {
		return v, err
	}
	s, _ := look.Of(w.Agent)
	if s.Err != nil {
		return v, fmt.Errorf("%s: %w", w.Agent, s.Err)
	}
	switch {
	case s.Dirty == 1:
		no("1 file is not committed")
	case s.Dirty > 1:
		no("%d files are not committed", s.Dirty)
	}
	if s.Out != w.Branch {
		no("%s is not what is checked out there", w.Short())
	}
	if s.Ahead > 0 && !s.Landed {
		if err := v.unlanded(ctx, repo, s); err != nil {
			return v, err
		}
	}
	if gone {
		return v, nil
	}
	r, err := w.Git()
	if err != nil {
		return v, err
	}
	return v, v.unfinished(ctx, r, w)
}

// unfinished says what would be lost with the worktree's directory, beside what git status shows.
func (v *Verdict) unfinished(ctx context.Context, r git.Repo, w tree.Worktree) (err error) {
	entry := r.Git
	no := func(why string) { v.Reasons = append(v.Reasons, why) }
	for _, sign := range []struct{ name, why string }{
		{"locked", "git was told to keep the worktree (git worktree unlock)"},
		{"MERGE_HEAD", "a merge is not finished there"},
		{"CHERRY_PICK_HEAD", "a cherry-pick is not finished there"},
		{"REVERT_HEAD", "a revert is not finished there"},
		{"BISECT_START", "a bisection is not finished there"},
		{"rebase-merge", "a rebase is not finished there"},
		{"rebase-apply", "a rebase is not finished there"},
	} {
		if _, err := os.Lstat(filepath.Join(entry, sign.name)); err == nil {
			no(sign.why)
		}
	}
	if list, err := os.ReadDir(filepath.Join(entry, "modules")); err == nil && len(list) > 0 {
		no("it holds repositories of submodules, which may have commits of their own")
	}
	if has, err := holdsRefs(ctx, r); err != nil {
		return err
	} else if has {
		no("it has refs of its own (refs/worktree), which go with it")
	}
	if name, err := nested(ctx, r); err != nil {
		return err
	} else if name != "" {
		no("it holds a repository of its own in " + name)
	}
	file, err := tree.Hidden(ctx, r.Look())
	if err != nil {
		return err
	}
	if file != "" {
		no(file + " is changed, and git was told not to look at it")
	}
	v.Ignored, err = ignored(ctx, r, w.Main)
	return err
}

// unlanded says that commits have not landed, unless another branch has them all, here or as it was last
// seen on a remote.
func (v *Verdict) unlanded(ctx context.Context, repo git.Dir, s merge.Side) error {
	commits, has, is := fmt.Sprintf("%d commits", s.Ahead), "have", "are"
	if s.Ahead == 1 {
		commits, has, is = "1 commit", "has", "is"
	}
	out, err := repo.List(ctx, "for-each-ref", "--contains="+s.Head, "--format=%(refname)", "refs/heads", "refs/remotes")
	if err != nil {
		return err
	}
	for ref := range strings.Lines(out) {
		if strings.TrimSpace(ref) != s.Branch {
			return nil
		}
	}
	if s.Target != "" {
		v.Reasons = append(v.Reasons, fmt.Sprintf("%s %s not landed on %s and %s on no other branch", commits, has, git.Branch(s.Base), is))
		return nil
	}
	v.Reasons = append(v.Reasons, fmt.Sprintf("%s %s on no other branch", commits, is))
	return nil
}

func commitOf(ctx context.Context, d git.Dir, ref string) (string, error) {
	return git.Repo{Top: d.Path}.Commit(ctx, ref)
}

// holdsRefs reports whether a worktree has refs of its own, which go with it.
func holdsRefs(ctx context.Context, r git.Repo) (bool, error) {
	ref, err := r.Look().First(ctx, "for-each-ref", "--count=1", "--format=%(refname)", "refs/worktree", "refs/bisect", "refs/rewritten")
	return ref != "", err
}

// nested returns a directory of the worktree that has a repository of its own, "" if none has. Git shows
// one that is neither a submodule nor in a directory with tracked files as a new file, or ignores it.
func nested(ctx context.Context, r git.Repo) (string, error) {
	out, err := r.Look().List(ctx, "ls-files", "--stage", "-z")
	if err != nil {
		return "", err
	}
	seen := map[string]bool{".": true}
	for line := range strings.SplitSeq(out, "\x00") {
		what, dir, _ := strings.Cut(line, "\t")
		if !strings.HasPrefix(what, "160000 ") {
			dir = filepath.Dir(dir)
		}
		for ; !seen[dir]; dir = filepath.Dir(dir) {
			seen[dir] = true
			if _, err := os.Lstat(filepath.Join(r.Top, dir, ".git")); !errors.Is(err, fs.ErrNotExist) {
				return dir, nil
			}
		}
	}
	return "", nil
}

// ErrKept is returned for a worktree that holds what would be lost.
var ErrKept = errors.New("its worktree stays")

// A keptAway is an ErrKept of an agent on another host, whose worktree is no matter of this one's.
type keptAway struct{ error }

func (keptAway) Is(target error) bool { return target == ErrKept }

// reasons are all reasons, of which ignored files are one. Ignored directories count unless they may go.
func (v Verdict) reasons(directoriesToo bool) []string {
	reasons := slices.Clone(v.Reasons)
	var files []string
	for _, name := range v.Ignored {
		if !directoriesToo || !strings.HasSuffix(name, "/") {
			files = append(files, name)
		}
	}
	if n := len(files); n > 0 {
		shown := strings.Join(files[:min(n, 5)], ", ")
		if n > 5 {
			shown += fmt.Sprintf(" and %d more", n-5)
		}
		reasons = append(reasons, "git ignores "+shown+", and no commit has "+map[bool]string{true: "it", false: "them"}[n == 1])
	}
	return reasons
}

// Err is why the agent's worktree stays, nil if nothing would be lost. Ignored directories count
// unless they may go.
func (v Verdict) Err(w tree.Worktree, directoriesToo bool) error {
	reasons := v.reasons(directoriesToo)
	if len(reasons) == 0 {
		return nil
	}
	if w.Away != nil {
		return advice.With(keptAway{fmt.Errorf("%s: its work is not ended: %s", w.Agent, strings.Join(reasons, "; "))},
			"`netsky diff %[1]s` shows its work, `netsky land %[1]s` lands what is committed; what nobody wants any more is yours to remove in %[2]s on %[3]s", w.Agent, advice.Word(w.Away.Dir), w.Agent.Host())
	}
	err := fmt.Errorf("%s: %w: %s", w.Agent, ErrKept, strings.Join(reasons, "; "))
	if v.orphaned {
		return w.Found(err)
	}
	if len(v.Reasons) > 0 {
		return advice.With(err, "`netsky diff %[1]s` shows its work, `netsky land %[1]s` lands what is committed; what nobody wants any more is yours to remove in %[2]s", w.Agent, w.Dir)
	}
	return advice.With(err, "move away what you want to keep, then `git -C %s clean -dfX`", advice.Word(w.Dir))
}
