package merge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/work/git"
	"netsky/work/tree"
)

// A Side is the work of one agent.
type Side struct {
	tree.Worktree
	git.Uncommitted
	Gone   bool   // its directory was deleted; the branch is still there
	Target string // the commit of Base; "" if there is none
	// Ahead and Behind count the commits that only the branch has, and only the target. Without a
	// target, Ahead counts those since the branch began.
	Ahead, Behind int
	// Lands is what merging the branch into the target comes to, without what is not committed.
	// Landed reports that the branch has moved since it was made and that this would change nothing
	// in the target, or in the branch that the target follows.
	Lands  Merge
	Landed bool
	Err    error // why nothing, or not all, is known about it
}

// Own reports whether the agent has work that has not landed.
func (s Side) Own() bool { return s.Dirty > 0 || s.Ahead > 0 && !s.Landed }

// A Forecast is what merging the agents' work would come to.
type Forecast struct {
	Sides     []Side
	Conflicts []Conflict
}

// Of returns the agent's side.
func (f Forecast) Of(id agent.ID) (Side, bool) {
	i := slices.IndexFunc(f.Sides, func(s Side) bool { return s.Agent == id })
	if i < 0 {
		return Side{}, false
	}
	return f.Sides[i], true
}

// A Forecaster looks at the worktrees of a home. It computes again only what has changed since its
// last look. One goroutine uses it.
type Forecaster struct {
	home  home.Dir
	repos map[string]*repo // by common git directory
}

// repo is what is known of one repository.
type repo struct {
	scratch *git.Scratch
	works   map[agent.ID]git.Uncommitted
	merges  map[Pair]Merge
	brings  map[Pair]map[string]bool   // files that a merge into a target changes there, where that was asked
	renames map[Pair]map[string]string // what a merge's own side has renamed, by the new names, where that was asked
	made    int                        // snapshots in the scratch
}

// New returns a Forecaster. The caller must Close it.
func New(h home.Dir) *Forecaster { return &Forecaster{home: h, repos: make(map[string]*repo)} }

// Close removes the Forecaster's scratch directories.
func (f *Forecaster) Close() (err error) {
	for _, r := range f.repos {
		err = errors.Join(err, r.scratch.Close())
	}
	clear(f.repos)
	return err
}

// maxMade is how many snapshots a scratch directory holds before it is made anew.
const maxMade = 500

// mergeTime limits the merges of one repository.
const mergeTime = 10 * time.Minute

// Look looks at the worktrees of these agents, of all without any, and merges the work of each with that
// of each other in the same repository and with its target. What can't be read of one is in its Err.
func (f *Forecaster) Look(ctx context.Context, only ...agent.ID) (c Forecast, err error) {
	list, err := tree.List(f.home)
	of := make(map[string][]*Side)
	for _, w := range list {
		if w.Ready && (len(only) == 0 || slices.Contains(only, w.Agent)) {
			of[w.Repo] = append(of[w.Repo], &Side{Worktree: w})
		}
	}
	for name, r := range f.repos {
		if of[name] == nil || r.made > maxMade || r.scratch.Full() {
			err = errors.Join(err, r.scratch.Close())
			delete(f.repos, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		sides := of[name]
		conflicts, rerr := f.repo(ctx, name, sides)
		if ctx.Err() != nil {
			return c, ctx.Err()
		}
		for _, s := range sides {
			if rerr != nil && s.Err == nil {
				s.Err = rerr
			}
			c.Sides = append(c.Sides, *s)
		}
		c.Conflicts = append(c.Conflicts, conflicts...)
	}
	slices.SortFunc(c.Sides, func(a, b Side) int { return agent.Compare(a.Agent, b.Agent) })
	return c, err
}

// repo looks at the worktrees of one repository.
func (f *Forecaster) repo(ctx context.Context, common string, sides []*Side) ([]Conflict, error) {
	r := f.repos[common]
	if r == nil {
		if _, err := os.Stat(common); err != nil {
			return nil, fmt.Errorf("its repository is gone: %w", err)
		}
		scratch, err := git.OpenScratch(f.home, common)
		if err != nil {
			return nil, err
		}
		r = &repo{scratch: scratch, works: make(map[agent.ID]git.Uncommitted)}
		f.repos[common] = r
	}
	targets, err := targetsOf(ctx, git.Dir{Path: common}, sides)
	if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, s := range sides {
		last := r.works[s.Agent]
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			s.Err = s.look(ctx, r.scratch, last, targets[s.Base])
		})
	}
	wg.Wait()
	for _, s := range sides {
		if s.Err == nil && r.works[s.Agent].Commit != s.Commit {
			r.works[s.Agent] = s.Uncommitted
			if s.Dirty > 0 {
				r.made++
			}
		}
	}
	d := git.Dir{Path: mainOf(sides, common), Env: r.scratch.Env(), Within: mergeTime}
	return r.merge(ctx, d, sides, targets)
}

// mainOf returns where git merges: where the branches land, as its submodules and attributes count.
func mainOf(sides []*Side, common string) string {
	for _, s := range sides {
		if info, err := os.Stat(s.Main); err == nil && info.IsDir() {
			return s.Main
		}
	}
	return common
}

// look finds out what is in the worktree, and where its target is.
func (s *Side) look(ctx context.Context, scratch *git.Scratch, last git.Uncommitted, to target) (err error) {
	d := git.Dir{Path: s.Repo}
	if _, err := os.Lstat(s.Dir); s.Away != nil || errors.Is(err, fs.ErrNotExist) {
		if s.Gone, s.Out = s.Away == nil, s.Branch; s.Away != nil {
			s.Dirty, s.Out = s.Away.Dirty, cmp.Or(s.Away.Aside, s.Branch) // of which nothing is here
		}
		s.Head, err = commit(ctx, d, s.Branch)
		if err == nil && s.Head == "" {
			err = fmt.Errorf("its directory and its branch %s are gone", s.Short())
		}
		s.Commit = s.Head
		if err != nil {
			return err
		}
	} else {
		r, err := s.Git()
		if err != nil {
			return err
		}
		if s.Uncommitted, err = scratch.Take(ctx, r, last); err != nil {
			return err
		}
	}
	s.Target = to.commit
	if since := cmp.Or(s.Target, s.From); since != s.Head {
		out, err := d.First(ctx, "rev-list", "--left-right", "--count", since+"..."+s.Head)
		if err != nil {
			return err
		}
		if _, err := fmt.Sscan(out, &s.Behind, &s.Ahead); err != nil {
			return fmt.Errorf("git rev-list: %q: %w", out, err)
		}
	}
	if s.Target != "" && s.Ahead == 0 { // all it has since it began is in the target
		s.Landed = s.Head != s.From && s.Head != ""
	}
	return nil
}

// commit returns the commit of a ref, "" if there is none.
func commit(ctx context.Context, d git.Dir, ref string) (string, error) {
	return git.Repo{Top: d.Path}.Commit(ctx, ref)
}

// merge computes what has not been computed before, and lists the conflicts.
func (r *repo) merge(ctx context.Context, d git.Dir, sides []*Side, targets map[string]target) (list []Conflict, err error) {
	asked := make(map[Pair]bool)
	var pairs []Pair
	ask := func(p Pair) {
		if _, known := r.merges[p]; !known && !asked[p] {
			pairs = append(pairs, p)
		}
		asked[p] = true
	}
	live := slices.DeleteFunc(slices.Clone(sides), func(s *Side) bool { return s.Err != nil || s.Dirty == 0 && s.Ahead == 0 })
	each := func(do func(a, b *Side, p Pair)) {
		for i, a := range live {
			if a.Target != "" && a.Ahead > 0 {
				do(a, nil, Pair{a.Target, a.Head})
			}
			if a.Target != "" && a.Commit != a.Head {
				do(a, nil, Pair{a.Target, a.Commit})
			}
			if up := targets[a.Base].upstream; up != nil && a.Ahead > 0 {
				do(a, nil, Pair{up.commit, a.Head})
			}
			for _, b := range live[i+1:] {
				do(a, b, Pair{a.Commit, b.Commit})
			}
		}
	}
	each(func(_, _ *Side, p Pair) { ask(p) })
	if len(pairs) > 0 {
		by, clean, err := attributed(ctx, d, live)
		if err != nil {
			return nil, err
		}
		defer clean()
		done, err := Merges(ctx, by, pairs)
		if err != nil {
			return nil, err
		}
		if r.merges == nil {
			r.merges = make(map[Pair]Merge)
		}
		for i, m := range done {
			r.merges[pairs[i]] = m
		}
	}
	maps.DeleteFunc(r.merges, func(p Pair, _ Merge) bool { return !asked[p] })
	for _, s := range live {
		if s.Target == "" || s.Ahead == 0 {
			continue
		}
		s.Lands = r.merges[Pair{s.Target, s.Head}]
		s.Landed = s.Landed || s.Lands.clean(targets[s.Base].tree)
		if up := targets[s.Base].upstream; up != nil {
			s.Landed = s.Landed || r.merges[Pair{up.commit, s.Head}].clean(up.tree)
		}
	}
	r.renames = make(map[Pair]map[string]string)
	brings := r.brings
	r.brings = make(map[Pair]map[string]bool)
	each(func(a, b *Side, p Pair) {
		m := r.merges[p]
		switch {
		case !m.Conflict, b == nil && p != Pair{a.Target, a.Commit}, !a.Own(), b != nil && !b.Own():
		case b == nil:
			list = append(list, conflict(m, git.Branch(a.Base), a.Agent))
		default:
			files := r.between(ctx, d, brings, a, b, m.Files)
			if len(files) > 0 || len(m.Files) == 0 {
				m.Files = files
				list = append(list, conflict(m, "", a.Agent, b.Agent))
			}
		}
	})
	return list, nil
}

// attributed returns a git that merges by the attributes of the commit that all of these land on. If there are
// several, those that are checked out count.
func attributed(ctx context.Context, d git.Dir, live []*Side) (git.Dir, func(), error) {
	target := ""
	for _, s := range live {
		if s.Target != "" && target != "" && s.Target != target {
			return d, func() {}, nil
		}
		target = cmp.Or(target, s.Target)
	}
	if target == "" {
		return d, func() {}, nil
	}
	return tree.Attributed(ctx, d, target)
}
