package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/store"
	"netsky/work/git"
)

// makeTime limits one git that writes a whole tree.
const makeTime = 10 * time.Minute

// maxBranches is how many names are tried for an agent's branch: those of other homes that use the
// repository are taken.
const maxBranches = 9

// A Placed is what Make did.
type Placed struct {
	Worktree
	Fresh bool   // it was made now
	Moved string // the commit that a worktree without work of its own was moved on to; "" if it was not
	Notes []string
}

// ErrTaken is returned for an agent that has no worktree yet, and whose directory is in use.
var ErrTaken = errors.New("is in use")

// found returns the worktree that is in the agent's directory though nothing is on record about it:
// the record was lost. Nothing in the directory is the zero Worktree.
func found(ctx context.Context, h home.Dir, id agent.ID, r git.Repo) (w Worktree, err error) {
	dir := h.Path(home.Workspace(id))
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(names) == 0 {
		return w, nil
	}
	if err != nil {
		return w, err
	}
	own, err := Worktree{Repo: r.Common, Dir: dir}.Git()
	if err != nil {
		return w, fmt.Errorf("%s, where its worktree would be, %w: it holds %s", dir, ErrTaken, names[0].Name())
	}
	w = Foresee(ctx, h, id, r)
	ours := w.Branch
	if w.Branch, w.From, err = own.Head(ctx); err == nil && w.Branch != ours && !strings.HasPrefix(w.Branch, ours+"-") { // another's, or on the way of one
		err = fmt.Errorf("%s, where its worktree would be, %w: a worktree in which netsky/%s is not checked out", dir, ErrTaken, id)
	}
	w.Ready, w.Made = true, store.At(time.Now())
	return w, err
}

// Foresee returns the worktree that Make would make for an agent that has none.
func Foresee(ctx context.Context, h home.Dir, id agent.ID, r git.Repo) Worktree {
	base, from, _ := r.Head(ctx) // it is only told
	return Worktree{Agent: id, Repo: r.Common, Main: r.Top, Dir: h.Path(home.Workspace(id)), Branch: "refs/heads/netsky/" + string(id), Base: base, From: from}
}

// Make makes sure that the agent has a worktree of the repository, made from what is checked out
// there, and returns it. One that is there is kept with all that is in it; with follow, and if nothing
// in it is the agent's own, it is moved on to what is checked out now. A directory that was deleted is
// made again, on the same branch.
//
// It refuses if the agent's worktree is of another repository, or if its directory holds what
// neither git nor netsky has put there. What a crash leaves is in the record, and the next Make
// goes on from there; until the record says that it is ready, nobody works in it. So it is if ctx ends
// while the files are written, which may take minutes.
func Make(ctx context.Context, h home.Dir, id agent.ID, r git.Repo, follow bool) (p Placed, err error) {
	lock, err := h.WaitLock(ctx, home.WorktreeLock(id), nil)
	if err != nil {
		return p, err
	}
	defer lock.Unlock()
	long := ctx // ends only the writing of files in a new worktree, which the next Make begins again
	ctx = context.WithoutCancel(ctx)
	w, err := Load(h, id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		w, err = found(ctx, h, id, r)
		if err == nil && w.Ready {
			err = w.save(h)
		}
		if err != nil {
			return p, err
		}
	case err != nil:
		return p, err
	}
	if w, err = w.movedTo(ctx, h, r); err != nil {
		return p, err
	}
	switch {
	case w.Agent == "" || w.Repo == r.Common:
	case w.Ready:
		return p, w.elsewhere(r)
	default:
		w = Worktree{} // it was never made
	}
	if w.Ready {
		if whole, err := w.whole(r); whole || err != nil {
			p.Worktree = w
			if err == nil && follow {
				err = p.catchUp(ctx, h, r)
			}
			return p, err
		}
	}
	if p.Worktree, err = w.begin(ctx, h, id, r); err != nil {
		return p, err
	}
	if err := again(func() error { return p.add(ctx, h, r) }); err != nil {
		return p, err
	}
	if err := p.checkOut(long, &p.Notes); err != nil {
		return p, err
	}
	if err := p.copyIncluded(ctx, r, &p.Notes); err != nil {
		return p, err
	}
	p.Fresh, p.Ready = true, true
	return p, p.save(h)
}

// elsewhere says that the agent's work is in another repository.
func (w Worktree) elsewhere(r git.Repo) error {
	return advice.With(fmt.Errorf("%s has its worktree %s, of the repository of %s, not of %s", w.Agent, w.Dir, w.Main, r.Top),
		"land its work, then `netsky work retire %s`; or start it there again: --dir %s", w.Agent, w.Main)
}

// whole reports whether the directory is still a worktree of the repository. It is not if it was
// deleted; anything else in its place is an error.
func (w Worktree) whole(r git.Repo) (bool, error) {
	if _, err := os.Lstat(w.Dir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	_, err := w.Git()
	if err == nil {
		return true, nil
	}
	if names, rerr := os.ReadDir(w.Dir); rerr == nil && len(names) == 0 {
		return false, nil
	}
	return false, advice.With(err, "move it away, and it is made again from the branch %s; `git worktree repair` in %s may mend it", git.Branch(w.Branch), r.Top)
}

func realOf(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// begin records what is about to be made. A worktree that was made before keeps its branch.
func (w Worktree) begin(ctx context.Context, h home.Dir, id agent.ID, r git.Repo) (Worktree, error) {
	if w.Agent == "" {
		base, from, err := r.Head(ctx)
		if err == nil && !utf8.ValidString(base) { // records are JSON
			err = fmt.Errorf("%s: the branch %q, which is checked out there, has a name that is not UTF-8", r.Top, git.Branch(base))
		}
		if err != nil {
			return w, err
		}
		w = Worktree{Agent: id, Repo: r.Common, Main: r.Top, Dir: h.Path(home.Workspace(id)), Base: base, From: from, Made: store.At(time.Now())}
		if w.Branch, err = freeBranch(ctx, r, id, realOf(h.Root())+"/"+home.Workspace(id)); err != nil {
			return w, err
		}
	} else if other, err := w.checkedOutIn(ctx, r, realOf(h.Root())+"/"+home.Workspace(id)); err != nil || other != "" {
		if err == nil {
			err = advice.With(fmt.Errorf("%s: its directory is gone, and its branch %s is checked out in %s", id, git.Branch(w.Branch), other),
				"check out another branch there, or remove that worktree; if it is the agent's own, which was moved: git worktree move %s %s", other, w.Dir)
		}
		return w, err
	}
	w.Ready, w.Setup = false, ""
	return w, w.save(h)
}

// checkedOutIn returns the worktree beside the agent's own that has its branch checked out; git would move
// that branch under it with each commit of the agent's.
func (w Worktree) checkedOutIn(ctx context.Context, r git.Repo, own string) (dir string, err error) {
	list, err := Entries(ctx, r.Look())
	for _, e := range list {
		if e.Branch == w.Branch && e.Dir != own {
			if _, err := os.Lstat(e.Dir); !errors.Is(err, fs.ErrNotExist) {
				return e.Dir, nil
			}
		}
	}
	return "", err
}

// freeBranch returns a name for the agent's branch that no worktree but one of this directory has
// checked out. It may exist: the work of a home that was lost goes on.
func freeBranch(ctx context.Context, r git.Repo, id agent.ID, dir string) (string, error) {
	list, err := Entries(ctx, r.Look())
	if err != nil {
		return "", err
	}
	taken := make(map[string]bool)
	for _, e := range list {
		if e.Branch != "" && e.Dir != dir {
			taken[e.Branch] = true
		}
	}
	for n := 1; n <= maxBranches; n++ {
		ref := "refs/heads/netsky/" + string(id)
		if n > 1 {
			ref = fmt.Sprintf("%s-%d", ref, n)
		}
		if !taken[ref] {
			return ref, nil
		}
	}
	return "", advice.With(fmt.Errorf("%s: each of the branches netsky/%s, -2 to -%d is checked out in another worktree", r.Top, id, maxBranches),
		"`git worktree list` there shows where")
}

// tries are the pauses before git is asked again. A git reads the entries of all worktrees, and git
// 2.39 fails with "failed to read .git/worktrees/NAME/commondir: Success" if another, the owner's or
// an agent's, is just writing one.
var tries = []time.Duration{50 * time.Millisecond, 200 * time.Millisecond, time.Second}

// again calls do until git does not complain, or has done so too often.
func again(do func() error) error {
	for _, pause := range tries {
		err := do()
		if ge := new(git.Error); !errors.As(err, &ge) {
			return err
		}
		time.Sleep(pause)
	}
	return do()
}

// add makes the repository's entry for the directory, and the branch. Of one home, only one does
// that at a time, as they would make each other's git fail; the files come afterwards, beside those
// of others.
func (w Worktree) add(ctx context.Context, h home.Dir, r git.Repo) error {
	lock, err := h.WaitLock(ctx, home.EntriesLock, nil)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if err := w.clear(ctx, r); err != nil {
		return err
	}
	if err := os.MkdirAll(w.Dir, 0o700); err != nil { // git would let others in
		return err
	}
	// Given twice, force also takes over an entry of a directory that is gone and that git had
	// locked while it made it. It overwrites nothing.
	args := []string{"worktree", "add", "--force", "--force", "--no-checkout"}
	have, err := r.Commit(ctx, w.Branch)
	if err != nil {
		return err
	}
	if have == "" {
		args = append(args, "--no-track", "-b", git.Branch(w.Branch), "--", w.Dir, w.From)
	} else {
		args = append(args, "--", w.Dir, git.Branch(w.Branch))
	}
	if _, err := r.Act(makeTime).Run(ctx, 4096, args...); err != nil {
		if have, cerr := r.Commit(ctx, "refs/heads/netsky"); cerr == nil && have != "" {
			return advice.With(fmt.Errorf("%s: there is a branch named netsky, so git can't make %s", r.Top, git.Branch(w.Branch)), "rename it: git -C %s branch -m netsky NAME", advice.Word(r.Top))
		}
		return fmt.Errorf("%s: git worktree add: %w", r.Top, err)
	}
	return nil
}

// checkOut writes the branch's files, as `git worktree add` does.
func (w Worktree) checkOut(ctx context.Context, notes *[]string) error {
	r, err := w.Acting(ctx)
	if err != nil {
		return err
	}
	d := r.Act(makeTime)
	if _, err := d.Run(ctx, 4096, "reset", "--hard", "--no-recurse-submodules", "--quiet"); err != nil {
		return fmt.Errorf("%s: git reset: %w", w.Dir, err)
	}
	head, err := d.First(ctx, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	_, err = d.Run(ctx, 4096, "hook", "run", "--ignore-missing", "post-checkout", "--", strings.Repeat("0", len(head)), head, "1")
	if err != nil { // the files are there all the same
		*notes = append(*notes, fmt.Sprintf("the repository's hook post-checkout: %v", err))
	}
	return nil
}

// clear removes what a git that was killed has left of a worktree that nobody has worked in. It
// refuses if a file there is none of the branch's.
func (w Worktree) clear(ctx context.Context, r git.Repo) error {
	names, err := os.ReadDir(w.Dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(names) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if err := w.untouched(ctx); err != nil {
		return err
	}
	from := w.From
	if have, err := r.Commit(ctx, w.Branch); err != nil {
		return err
	} else if have != "" {
		from = have
	}
	known := make(map[string]bool)
	list, err := r.Look().List(ctx, "ls-tree", "-r", "-z", "--name-only", from)
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(list, "\x00") {
		known[name] = true
	}
	included, err := included(ctx, r)
	if err != nil {
		return err
	}
	for _, name := range included.files {
		known[name] = true
	}
	err = filepath.WalkDir(w.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(w.Dir, path)
		if err != nil || known[name] || name == ".git" {
			return err
		}
		return advice.With(fmt.Errorf("%s: netsky was killed while it made this worktree, and %s in it is none of its files", w.Dir, name), "move that file away")
	})
	if err != nil {
		return err
	}
	return os.RemoveAll(w.Dir)
}

// untouched reports a directory that is more than what a killed git leaves there, which writes the index
// last: one that was away as the worktree was to be made again, and that has come back.
func (w Worktree) untouched(ctx context.Context) error {
	own, err := w.Git()
	if err == nil {
		var n int
		if _, serr := os.Lstat(filepath.Join(own.Git, "index")); serr == nil {
			n, err = own.Dirty(ctx, 1)
		}
		if err == nil && n > 0 {
			err = errors.New("it holds changes that are not committed")
		}
	} else if _, serr := os.Lstat(filepath.Join(w.Dir, ".git")); errors.Is(serr, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		err = advice.With(fmt.Errorf("%s: is not made anew: %w", w.Dir, err), "move it away, then compare the two")
	}
	return err
}

// SetUp records that the setup command with that digest has run in the agent's worktree.
func SetUp(h home.Dir, id agent.ID, digest string) error {
	w, err := Load(h, id)
	if err != nil {
		return err
	}
	w.Setup = digest
	return w.save(h)
}

// Moved records that the agent's branch now begins at another commit: what it had has landed.
func Moved(h home.Dir, id agent.ID, from string) error {
	w, err := Load(h, id)
	if err != nil {
		return err
	}
	w.From = from
	return w.save(h)
}
