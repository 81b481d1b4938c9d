package land

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/work/git"
	"netsky/work/tree"
)

// moveTime limits one git that moves a ref or writes the files of a worktree.
const moveTime = 10 * time.Minute

// A move is a ref's way from one commit to another, and the files of the worktree that has it
// checked out.
type move struct {
	Repo string `json:"repo"` // the git directory that its worktrees share
	Ref  string `json:"ref"`
	From string `json:"from"`
	To   string `json:"to"`
	Dir  string `json:"dir,omitempty"` // the worktree; "" if none has it checked out
	// Hooks is where hooks are found, if that is not to be asked of the worktree, as an agent works there.
	Hooks string `json:"hooks,omitempty"`
	Why   string `json:"why"` // for the reflog
}

// tree returns the worktree. Its repository is known, and not looked for there.
func (m move) tree() (git.Repo, error) {
	r, err := tree.At(m.Repo, m.Dir)
	if m.Hooks != "" {
		r.Hooks = m.Hooks
	}
	return r, err
}

// A DirtyError says that a worktree can't be updated without touching work that is not committed.
type DirtyError struct {
	Ref   string
	Dir   string
	Files []string // some of them
	More  int      // that are not listed
	Own   bool     // git does not track them; otherwise they have changes
	// Landing says that they are in the way of a landing, which could be pushed instead.
	Landing bool
	By      agent.ID // whose program has changed Strayed there
	Strayed []string
}

func (e *DirtyError) Error() string {
	what := "has changes that are not committed"
	if e.Own {
		what = "holds files that would be overwritten, and that git does not track"
	}
	var names []string
	for _, f := range e.Files {
		names = append(names, git.Shown(f))
	}
	list := strings.Join(names, ", ")
	if e.More > 0 {
		list += fmt.Sprintf(" and %d more", e.More)
	}
	return fmt.Sprintf("%s, where %s is checked out, %s: %s", e.Dir, git.Branch(e.Ref), what, list)
}

// Is has it match ErrNotYet.
func (e *DirtyError) Is(target error) bool { return target == ErrNotYet }

// Advice is what to do next.
func (e *DirtyError) Advice() string {
	if e.Own {
		return "move them away, then try again"
	}
	next := "commit or stash them there, then try again"
	if len(e.Strayed) > 0 {
		next = fmt.Sprintf("%s has changed %s there, outside of its own worktree: see whether that is to stay; %s", e.By, git.Shown(strings.Join(e.Strayed, ", ")), next)
	}
	if e.Landing {
		next += "; --pr leaves " + git.Branch(e.Ref) + " alone"
	}
	return next
}

// maxNamed is how many files an error names.
const maxNamed = 10

func dirty(ref, dir string, own bool, names []string) error {
	return &DirtyError{Ref: ref, Dir: dir, Files: names[:min(maxNamed, len(names))], More: max(0, len(names)-maxNamed), Own: own}
}

// checkedOut returns the worktree that has the ref checked out, "" if none has. One that is gone, or
// two of them, or a rebase or bisection of the ref that is under way, are errors.
func checkedOut(ctx context.Context, r git.Repo, ref string) (dir string, err error) {
	list, err := tree.Entries(ctx, git.Dir{Path: r.Common})
	if err != nil {
		return "", err
	}
	for i, e := range list {
		if e.Branch != ref {
			continue
		}
		if dir != "" {
			return "", refusef("%s is checked out twice: in %s and in %s", git.Branch(ref), dir, e.Dir)
		}
		if dir = e.Dir; i == 0 {
			if dir, err = mainTop(ctx, r, e.Dir); err != nil {
				return "", refusef("%s is checked out where %w", git.Branch(ref), err)
			}
		}
	}
	if dir != "" {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return "", advice.With(refusef("%s is checked out in %s, which is gone", git.Branch(ref), dir), "if it is gone for good: git worktree prune")
		}
	}
	return dir, busy(r.Common, ref)
}

// mainTop returns the root of the main worktree. Git lists it as the parent of its own directory, or as
// that directory itself, which is elsewhere in a submodule, and where .git is a link or was made by
// --separate-git-dir.
func mainTop(ctx context.Context, r git.Repo, listed string) (string, error) {
	if r.Git == r.Common {
		return r.Top, nil
	}
	if listed != r.Common {
		return listed, nil
	}
	top, err := git.Dir{Path: r.Common}.Run(ctx, 16<<10, "rev-parse", "--show-toplevel")
	if err != nil {
		return "", fmt.Errorf("%s has its files, which is not known: %w", r.Common, err)
	}
	return strings.TrimSuffix(top, "\n"), nil
}

// busy reports a rebase or a bisection of the ref in any worktree: git would lose track of it.
func busy(common, ref string) error {
	dirs := []string{common}
	list, err := os.ReadDir(filepath.Join(common, "worktrees"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range list {
		dirs = append(dirs, filepath.Join(common, "worktrees", e.Name()))
	}
	for _, dir := range dirs {
		for _, u := range []struct{ what, file, end string }{
			{"a rebase", "rebase-merge/head-name", "finish or abort it (`git rebase --abort`)"},
			{"a rebase", "rebase-apply/head-name", "finish or abort it (`git rebase --abort`)"},
			{"a bisection", "BISECT_START", "end it (`git bisect reset`)"},
		} {
			data, err := home.ReadOwn(filepath.Join(dir, u.file), 16<<10) // an agent may have put a pipe there
			if name := strings.TrimSpace(string(data)); err == nil && (name == ref || name == git.Branch(ref)) {
				return advice.With(refusef("%s of %s is under way (%s)", u.what, git.Branch(ref), filepath.Join(dir, u.file)), "%s", u.end)
			}
		}
	}
	return nil
}

// ready reports what keeps the ref from moving now.
func (m move) ready(ctx context.Context) error {
	now, err := commitOf(ctx, m.Repo, m.Ref)
	switch {
	case err != nil:
		return err
	case now != m.From:
		return refusef("%s has moved meanwhile, from %s to %s", git.Branch(m.Ref), short(m.From), short(now))
	case m.Dir == "":
		return nil
	}
	r, err := m.tree()
	if err != nil {
		return err
	}
	d := r.Look()
	if at, err := d.First(ctx, "symbolic-ref", "--quiet", "HEAD"); err != nil || at != m.Ref {
		return refusef("%s is no longer checked out in %s", git.Branch(m.Ref), m.Dir)
	}
	for _, u := range []struct{ file, verb string }{
		{"MERGE_HEAD", "merge"}, {"CHERRY_PICK_HEAD", "cherry-pick"}, {"REVERT_HEAD", "revert"}, {"rebase-merge", "rebase"}, {"rebase-apply", "rebase"},
	} {
		if _, err := os.Lstat(filepath.Join(r.Git, u.file)); err == nil {
			return advice.With(refusef("%s, where %s is checked out, is in the middle of a %s", m.Dir, git.Branch(m.Ref), u.verb),
				"finish or abort it (`git %s --abort`)", u.verb)
		}
	}
	changed, err := d.List(ctx, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=no", "--ignore-submodules=all")
	if err != nil {
		return fmt.Errorf("%s: git status: %w", m.Dir, err)
	}
	if changed != "" {
		var names []string
		for line := range strings.SplitSeq(strings.TrimSuffix(changed, "\x00"), "\x00") {
			names = append(names, line[min(3, len(line)):])
		}
		return dirty(m.Ref, m.Dir, false, names)
	}
	return m.overwrites(ctx, d)
}

// overwrites reports files that git does not track where the move adds one: git would overwrite those
// that it ignores, and what is in a submodule that a file replaces.
func (m move) overwrites(ctx context.Context, d git.Dir) error {
	out, err := d.List(ctx, "diff-tree", "-r", "-z", "--no-renames", "--raw", "--diff-filter=A", m.From, m.To)
	if err != nil {
		return err
	}
	own, err := tree.Replaced(ctx, d, m.From, m.To)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(m.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	files, dirs := make(map[string]bool), make(map[string]bool)
	parts := strings.Split(out, "\x00")
	for i := 0; i+1 < len(parts); i += 2 {
		name := parts[i+1]
		if strings.HasPrefix(parts[i], ":000000 160000 ") {
			if _, err := root.Lstat(filepath.Join(name, ".git")); err == nil {
				continue // the submodule itself, which was left when it was removed
			}
		}
		// A directory in its place, or a file in the place of one that leads to it.
		for at := name; at != "."; at = filepath.Dir(at) {
			if info, err := root.Lstat(at); err == nil && placed(m.Dir, at) {
				if !info.IsDir() {
					files[at] = true
				} else if at == name {
					dirs[at] = true
				}
				break
			}
		}
	}
	tracked, err := lists(ctx, d, files, "--cached") // git calls nothing in another repository untracked
	if err != nil {
		return err
	}
	for _, name := range tracked {
		delete(files, name)
	}
	own = append(own, slices.Sorted(maps.Keys(files))...)
	below, err := lists(ctx, d, dirs, "--others")
	if err != nil {
		return err
	}
	own = append(own, below...)
	if len(own) > 0 {
		return dirty(m.Ref, m.Dir, true, own)
	}
	return nil
}

// lists returns what git lists at or below some names.
func lists(ctx context.Context, d git.Dir, names map[string]bool, what string) (list []string, err error) {
	d.Env = append(slices.Clip(d.Env), "GIT_LITERAL_PATHSPECS=1")
	for part := range slices.Chunk(slices.Sorted(maps.Keys(names)), 500) { // the length of a command line is limited
		out, err := d.List(ctx, append([]string{"ls-files", what, "-z", "--"}, part...)...)
		if err != nil {
			return nil, err
		}
		list = append(list, strings.FieldsFunc(out, func(r rune) bool { return r == 0 })...)
	}
	return list, nil
}

// run moves the ref, and the files before it, as git does. begin is called before the first file is
// written. It changes nothing, or puts back what it has changed, if it returns an error. What a git that
// failed has come to, the index and the ref say: it may have died when it had done its work. The gits hold
// the files until they end.
func (m move) run(ctx context.Context, step func(string), begin func() error, holds ...*os.File) error {
	step("move")
	if err := m.ready(ctx); err != nil {
		return err
	}
	if m.Dir != "" {
		if err := begin(); err != nil {
			return err
		}
		step("writing")
		if err := m.files(ctx, m.From, m.To, holds); err != nil {
			err = fmt.Errorf("%s: git read-tree: %w", m.Dir, err)
			written, ierr := m.indexAt(ctx, m.To)
			if ierr == nil && !written {
				ierr = m.restore(ctx) // fails on a full disk, say
			}
			if ierr != nil {
				return errors.Join(err, halfway{ierr})
			}
			if !written {
				return err
			}
		}
		step("files")
	}
	if err := m.ref(ctx, holds); err != nil {
		err = notYet{fmt.Errorf("%s: git update-ref: %w", git.Branch(m.Ref), err)}
		switch now, rerr := commitOf(ctx, m.Repo, m.Ref); {
		case rerr != nil:
			return errors.Join(err, halfway{rerr})
		case now != m.To && m.Dir != "":
			if berr := m.files(ctx, m.To, m.From, holds); berr != nil {
				return errors.Join(err, halfway{fmt.Errorf("%s: its files could not be put back: %w", m.Dir, berr)})
			}
			return err
		case now != m.To:
			return err
		}
	}
	step("moved")
	return nil
}

// halfway says that files of the worktree are neither commit's.
type halfway struct{ error }

func (e halfway) Unwrap() error { return e.error }

// files has the worktree's index and files changed from one commit's to another's. Git refuses if a
// file of those has changes, or the index is locked.
func (m move) files(ctx context.Context, from, to string, holds []*os.File) error {
	r, err := m.tree()
	if err != nil {
		return err
	}
	d := r.Act(moveTime)
	d.Holds = holds
	// To read-tree, a file that was only touched has changes. What can't be refreshed, it refuses.
	_ = act(ctx, d, "update-index", "-q", "--refresh")
	// As in `git merge`, a submodule stays at what is checked out in it, whatever submodule.recurse says:
	// git would overwrite what is changed there.
	return act(ctx, d, "read-tree", "-m", "-u", "--no-recurse-submodules", from, to)
}

func (m move) ref(ctx context.Context, holds []*os.File) error {
	d := git.Dir{Path: m.Repo, Acts: true, Within: moveTime, Hooks: m.Hooks}
	if m.Dir != "" {
		r, err := m.tree()
		if err != nil {
			return err
		}
		d = r.Act(moveTime)
	}
	d.Holds = holds
	return act(ctx, d, "update-ref", "-m", m.Why, m.Ref, m.To, m.From)
}

// merged runs the hook that git runs after a merge, in the worktree that was updated. What it says is
// returned as a note.
func (m move) merged(ctx context.Context) (note string) {
	if m.Dir == "" {
		return ""
	}
	r, err := m.tree()
	if err == nil {
		err = act(ctx, r.Act(moveTime), "hook", "run", "--ignore-missing", "post-merge", "--", "0")
	}
	if err != nil {
		return fmt.Sprintf("the repository's hook post-merge: %v", err)
	}
	return ""
}

// commitOf returns the commit of a ref, "" if there is none.
func commitOf(ctx context.Context, common, ref string) (string, error) {
	return git.Repo{Top: common}.Commit(ctx, ref)
}

// ancestor reports whether a commit is another or one of its ancestors.
func ancestor(ctx context.Context, common, commit, of string) bool {
	_, err := git.Dir{Path: common}.Run(ctx, 256, "merge-base", "--is-ancestor", commit, of)
	return err == nil
}

// same reports whether two paths are one directory.
func same(a, b string) bool {
	one, err := os.Stat(a)
	two, terr := os.Stat(b)
	return err == nil && terr == nil && os.SameFile(one, two)
}
