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

// The states of an agent's work.
const (
	Landed    = "landed"    // the target has all of it
	Proved    = "checked"   // the check has passed on the present merged tree, and nothing is loose
	Stale     = "stale"     // it has passed on an earlier one, or something is loose
	Unchecked = "unchecked" // it has never passed
	Failed    = "failed"    // it has failed on the present merged tree, whatever it did before
	Conflicts = "conflicts" // there is no merged tree
)

// A Proof says what is proved of an agent's work now.
type Proof struct {
	State string `json:"state"`
	Why   string `json:"why,omitempty"`   // of a state that is not what its check alone would say
	Check string `json:"check,omitempty"` // the id of the newest check that the state rests on
	Loose Loose  `json:"loose"`
	Merge Merge  `json:"merge"`
}

// Proof returns what is proved of the work in the worktree. It runs nothing but git, and
// changes nothing.
func (d Desk) Proof(ctx context.Context, r git.Repo, w tree.Worktree) (p Proof, err error) {
	target, err := Target(w, "")
	if err != nil {
		return p, err
	}
	if p.Merge, err = Merged(ctx, r, w, target); err != nil {
		return p, err
	}
	if p.Loose, err = LooseIn(ctx, w); err != nil {
		return p, err
	}
	switch {
	case len(p.Merge.Conflicts) > 0:
		p.State = Conflicts
		return p, nil
	case p.Merge.Landed:
		p.State = Landed
		return p, nil
	}
	p.State = Unchecked
	err = d.records(ctx, func(rec record.Records) error { return p.look(ctx, rec, d.Command.Digest(), w) })
	if p.State == Proved && p.Loose.Any() {
		p.State, p.Why = Stale, p.Loose.String()
	}
	return p, err
}

// Said returns what the checks on record say of an agent's work, if landing it would make that tree: Proved,
// Failed, Stale or Unchecked. Whether it is all of its work is not asked.
func Said(ctx context.Context, rec record.Records, c check.Command, w tree.Worktree, tree string) (string, error) {
	p := Proof{State: Unchecked, Merge: Merge{Tree: tree}}
	err := p.look(ctx, rec, c.Digest(), w)
	return p.State, err
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

// look finds what the checks on record say of the merged tree.
func (p *Proof) look(ctx context.Context, rec record.Records, digest string, w tree.Worktree) error {
	here, err := rec.Checks(ctx, record.Filter{Repo: w.Repo, Tree: p.Merge.Tree, Limit: 1000})
	if err != nil {
		return err
	}
	switch k := record.Newest(here, digest); k.State {
	case record.Passed:
		p.State, p.Check = Proved, k.ID
		return nil
	case record.Failed:
		p.State, p.Check = Failed, k.ID
		return nil
	}
	before, err := rec.Checks(ctx, record.Filter{Agent: w.Agent, State: record.Passed, Limit: 1})
	if err == nil && len(before) > 0 && before[0].Repo == w.Repo {
		p.State, p.Check = Stale, before[0].ID
		switch k := before[0]; {
		case k.Head != p.Merge.Head:
			p.Why = fmt.Sprintf("%s was checked, the branch is at %s", short(k.Head), short(p.Merge.Head))
		case k.Digest != digest && k.Tree == p.Merge.Tree:
			p.Why = "the check command has changed"
		default:
			p.Why = fmt.Sprintf("%s has moved on since the check", git.Branch(p.Merge.Target))
		}
	}
	return err
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
