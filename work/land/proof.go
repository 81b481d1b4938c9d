package land

import (
	"context"
	"fmt"
	"strings"

	"netsky/agent"
	"netsky/home"
	"netsky/work/check"
	"netsky/work/git"
	"netsky/work/record"
	"netsky/work/tree"
)

// What checks say of an agent's work.
const (
	Proved    = "checked"   // the check has passed on the present merged tree
	Stale     = "stale"     // it has passed on an earlier one
	Unchecked = "unchecked" // it has never passed
	Failed    = "failed"    // it has failed on the present merged tree, whatever it did before
)

// Said returns what the checks on record say of an agent's work, if landing it would make that tree: Proved,
// Failed, Stale or Unchecked. Whether it is all of its work is not asked.
func Said(ctx context.Context, rec record.Records, c check.Command, w tree.Worktree, tree string) (string, error) {
	here, err := rec.Checks(ctx, record.Filter{Repo: w.Repo, Tree: tree, Limit: 1000})
	if err != nil {
		return "", err
	}
	switch record.Newest(here, c.Digest()).State {
	case record.Passed:
		return Proved, nil
	case record.Failed:
		return Failed, nil
	}
	before, err := rec.Checks(ctx, record.Filter{Agent: w.Agent, State: record.Passed, Limit: 1})
	if err == nil && len(before) > 0 && before[0].Repo == w.Repo {
		return Stale, nil
	}
	return Unchecked, err
}

// Current returns the tree that landing an agent's work now would make, and in which repository. There is an
// error if that is not all of its work, or if it has none that has not landed.
func Current(ctx context.Context, h home.Dir, id agent.ID) (repo, tree string, err error) {
	w, err := Worktree(h, id)
	if err != nil {
		return "", "", err
	}
	r, err := Repo(ctx, w)
	if err != nil {
		return "", "", err
	}
	target, err := Target(w, "")
	if err != nil {
		return "", "", err
	}
	m, err := Merged(ctx, r, w, target)
	if err != nil {
		return "", "", err
	}
	loose, err := LooseIn(ctx, w)
	switch {
	case err != nil:
	case loose.Any():
		err = fmt.Errorf("%s has %s", id, loose)
	case len(m.Conflicts) > 0:
		err = fmt.Errorf("%s: its work conflicts with %s", id, git.Branch(m.Target))
	case m.Landed:
		err = fmt.Errorf("%s: %w on %s", id, ErrNothing, git.Branch(m.Target))
	}
	return r.Common, m.Tree, err
}

// String says what is not part of a check, in words that follow the agent's name and "has".
func (l Loose) String() string {
	var what []string
	switch {
	case l.Files == 1:
		what = append(what, "1 uncommitted file")
	case l.Files > 1:
		what = append(what, fmt.Sprintf("%d uncommitted files", l.Files))
	}
	if l.Hidden != "" {
		what = append(what, "changes in "+git.Shown(l.Hidden)+", at which git was told not to look")
	}
	if l.Aside != "" {
		what = append(what, l.Aside+" checked out instead of its own")
	}
	return strings.Join(what, ", and ")
}
