package work

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/work/git"
	"netsky/work/merge"
	"netsky/work/tree"
)

// A beside is what a repository has of agents' work beside their branches and worktrees.
type beside struct {
	stashed map[string]int              // by the branch on which it was put away
	commits map[agent.ID]map[string]int // by the branch that has them, or by the worktree if none has
	changed map[agent.ID]map[string]int // files that are not committed, by the worktree
}

// add adds to a count of an agent's.
func add(m map[agent.ID]map[string]int, id agent.ID, key string, n int) {
	if m[id] == nil {
		m[id] = make(map[string]int)
	}
	m[id][key] += n
}

// A side is an agent's worktree, and the commit that it lands on, or "".
type side struct {
	tree.Worktree
	target string
}

func sides(c merge.Forecast, common string) (list []side) {
	for _, s := range c.Sides {
		if s.Repo == common {
			list = append(list, side{s.Worktree, s.Target})
		}
	}
	return list
}

// Aside says, as [State.Aside] does, what work an agent has that is not in its own worktree and branch.
func Aside(ctx context.Context, h home.Dir, id agent.ID) ([]string, error) {
	w, err := tree.Load(h, id)
	if err != nil {
		return nil, err
	}
	list, err := tree.List(h)
	var same []side
	for _, o := range list {
		if o.Repo != w.Repo {
			continue
		}
		s := side{Worktree: o}
		if o.Base != "" {
			s.target, _ = git.Repo{Top: w.Repo}.Commit(ctx, o.Base)
		}
		same = append(same, s)
	}
	st := State{Main: w.Main}
	st.aside(ctx, h, w, look(ctx, h, w.Repo, same))
	return st.Aside(), err
}

// Aside are the facts of Facts about work that is not in the agent's own worktree and branch.
func (st State) Aside() (list []string) {
	count := func(n int, what, where string) {
		list = append(list, fmt.Sprintf("%d %s%s %s", n, what, map[bool]string{false: "s"}[n == 1], where))
	}
	for _, name := range slices.Sorted(maps.Keys(st.Elsewhere)) {
		count(st.Elsewhere[name], "commit", "on "+git.Shown(name))
	}
	for _, dir := range slices.Sorted(maps.Keys(st.Beside)) {
		count(st.Beside[dir], "file", "not committed in "+git.Shown(dir))
	}
	if n := len(st.Strayed); n > 0 {
		names := git.Shown(st.Strayed[0])
		if n > 1 {
			names += fmt.Sprintf(" and %d more", n-1)
		}
		list = append(list, "changed in "+git.Shown(st.Main)+": "+names)
	}
	return list
}

// aside adds what there is beside the worktree.
func (st *State) aside(ctx context.Context, h home.Dir, w tree.Worktree, b beside) {
	st.Stashed, st.Elsewhere, st.Beside = b.stashed[w.Short()], b.commits[w.Agent], b.changed[w.Agent]
	st.Strayed, _ = w.Strays(ctx, h) // what can't be told is not said
}

// look finds that. What can't be read is not there.
func look(ctx context.Context, h home.Dir, common string, sides []side) beside {
	d := git.Dir{Path: common}
	b := beside{stashed: make(map[string]int), commits: make(map[agent.ID]map[string]int), changed: make(map[agent.ID]map[string]int)}
	out, _ := d.Run(ctx, 1<<20, "log", "-g", "--no-show-signature", "--format=%gs", "refs/stash", "--")
	for line := range strings.Lines(out) { // "WIP on BRANCH: …", "On BRANCH: …"
		if on, _, ok := strings.Cut(strings.TrimPrefix(line, "WIP "), ": "); ok && len(on) > 3 {
			b.stashed[on[3:]]++
		}
	}
	others := others(h, common, sides)
	since := time.Now()
	args := []string{"log", "--no-show-signature", "--ignore-missing", "--grep=^" + tree.Trailer + ": ",
		"--format=%S%x00%(trailers:key=" + tree.Trailer + ",valueonly,separator=%x20)", "--exclude=refs/heads/netsky/*", "--branches"}
	for _, o := range others {
		if o.commit != "" {
			args = append(args, o.commit)
		}
	}
	args = append(args, "--not", "--branches=netsky/*")
	for _, s := range sides {
		if s.target != "" {
			args = append(args, s.target)
		}
		if made := s.Made.Time(); made.Before(since) {
			since = made
		}
	}
	// Made in the same second, a commit is as old.
	out, _ = d.Run(ctx, 1<<20, append(args, "--since="+since.Add(-time.Second).Format(time.RFC3339), "--")...)
	for line := range strings.Lines(out) {
		ref, who, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\x00")
		id := agent.ID(who)
		if !id.IsClone() {
			continue
		}
		on := git.Branch(ref)
		if i := slices.IndexFunc(others, func(o other) bool { return o.commit == ref || o.branch != "" && o.branch == ref }); i >= 0 {
			if others[i].by = id; others[i].commit == ref {
				on = "no branch, in " + others[i].Dir
			}
		}
		add(b.commits, id, on, 1)
	}
	for i, o := range others {
		if o.by == "" || i >= maxOthers {
			continue
		}
		if n, err := o.Changed(ctx, common, maxChanged); err == nil && n > 0 {
			add(b.changed, o.by, o.Dir, n)
		}
	}
	return b
}

const (
	maxOthers  = 50 // worktrees beside the agents' own that are looked into
	maxChanged = 1000
)

// An other is a linked worktree that is no agent's own.
type other struct {
	tree.Linked
	by     agent.ID // who has added it, or has work in it; "" is not known
	branch string   // that is checked out, a full ref name, or else
	commit string
}

// others lists the worktrees of a repository that are no agent's own, by agents first.
func others(h home.Dir, common string, sides []side) (list []other) {
	all, _ := tree.LinkedTo(common)
	if len(all) == 0 {
		return nil
	}
	by, own := make(map[string]agent.ID), make(map[string]agent.ID)
	for _, s := range sides {
		own[realOf(s.Dir)] = s.Agent
		for _, entry := range tree.Added(h, s.Agent) {
			by[realOf(entry)] = s.Agent
		}
	}
	scratch := realOf(h.Path(tree.ScratchDir))
	for _, l := range all {
		dir := realOf(l.Dir)
		if own[dir] != "" || tree.Within(scratch, dir) {
			continue
		}
		o := other{Linked: l, by: by[realOf(l.Entry)]}
		for root, id := range own {
			if o.by == "" && tree.Within(root, dir) {
				o.by = id
			}
		}
		head := l.Head()
		if ref, ok := strings.CutPrefix(head, "ref: "); ok {
			o.branch = ref
		} else if _, err := hex.DecodeString(head); err == nil {
			o.commit = head
		}
		list = append(list, o)
	}
	slices.SortStableFunc(list, func(a, b other) int { return strings.Compare(string(b.by), string(a.by)) })
	return list
}

func realOf(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}
