package land

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"netsky/agent"
	"netsky/store"
	"netsky/work/git"
	"netsky/work/tree"
)

// An Outcome is what became of one agent's work in LandAll.
type Outcome struct {
	Agent   agent.ID `json:"agent"`
	Landing Landing  `json:"landing"`
	Err     error    `json:"-"` // nil if it has landed
}

// A candidate is work that could land.
type candidate struct {
	agent  agent.ID
	target string
	ready  store.Time
	files  map[string]bool
	shares bool // a file with another candidate
}

// LandAll lands the work of all agents whose check has passed: first what shares no file with the
// others, then the rest, each in the order in which the checks passed. Each is forecast again when its
// turn comes; one whose merged tree has changed, as another has landed meanwhile, is checked
// again. One that can't land does not keep the others from it.
func (d Desk) LandAll(ctx context.Context, o LandOptions, out io.Writer, done func(Outcome)) error {
	list, err := tree.List(d.Home)
	if err != nil {
		d.say("%v", err)
	}
	var ready []candidate
	for _, w := range list {
		c, err := d.candidate(ctx, w, o)
		switch {
		case errors.Is(err, ErrNothing):
		case err != nil:
			done(Outcome{Agent: w.Agent, Err: err})
		default:
			ready = append(ready, c)
		}
	}
	inOrder(ready)
	for _, c := range ready {
		if err := ctx.Err(); err != nil {
			return err
		}
		l, err := d.Land(ctx, c.agent, o)
		if errors.Is(err, errUnproved) && !o.Unchecked && d.Command.Text != "" {
			d.say("%s: checked again, as %s has moved on", c.agent, git.Branch(c.target))
			var k Checked
			if k, err = d.Check(ctx, c.agent, CheckOptions{Onto: o.Onto, Out: out}); err == nil {
				l, err = d.Land(ctx, c.agent, o) // says if it has failed
			}
			l.Loose = k.Loose
		}
		if errors.Is(err, ErrNothing) {
			continue
		}
		done(Outcome{c.agent, l, err})
	}
	return nil
}

// candidate looks at one agent's work. What has conflicts, or no evidence, is left to Land to refuse.
func (d Desk) candidate(ctx context.Context, w tree.Worktree, o LandOptions) (c candidate, err error) {
	if !w.Ready {
		return c, fmt.Errorf("%s: its worktree is not whole", w.Agent)
	}
	r, err := Repo(ctx, w)
	if err != nil {
		return c, err
	}
	c = candidate{agent: w.Agent, files: make(map[string]bool)}
	if c.target, err = Target(w, o.Onto); err != nil {
		return c, err
	}
	m, err := Merged(ctx, r, w, c.target)
	switch {
	case err != nil:
		return c, err
	case len(m.Conflicts) > 0:
		err := &ConflictError{Who: string(w.Agent), Merge: m}
		d.tell(w.Agent, m, err)
		return c, err
	case m.Landed:
		return c, ErrNothing
	}
	if _, err := d.proved(ctx, w.Agent, r.Common, m, o); err != nil {
		return c, err
	}
	if k, ok, _ := d.Evidence(ctx, r.Common, m.Tree); ok {
		c.ready = k.Ended
	}
	return c, changed(ctx, r, m, c.files)
}

// changed collects the files that the branch changes.
func changed(ctx context.Context, r git.Repo, m Merge, into map[string]bool) error {
	out, err := r.Look().List(ctx, "diff-tree", "-r", "-z", "--no-renames", "--name-only", m.Base, m.Head)
	for name := range strings.SplitSeq(out, "\x00") {
		if name != "" {
			into[name] = true
		}
	}
	return err
}

// inOrder sorts the candidates: first who shares no file with another, then the oldest.
func inOrder(list []candidate) {
	users := make(map[string]int)
	for _, c := range list {
		for name := range c.files {
			users[name]++
		}
	}
	for i := range list {
		for name := range list[i].files {
			list[i].shares = list[i].shares || users[name] > 1
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		if a.shares != b.shares {
			return map[bool]int{false: -1, true: 1}[a.shares]
		}
		return cmp.Or(cmp.Compare(a.ready, b.ready), agent.Compare(a.agent, b.agent))
	})
}
