package land

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"netsky/home"
	"netsky/internal/advice"
	"netsky/work/git"
	"netsky/work/record"
	"netsky/work/tree"
)

// ErrNoLanding is returned for an id that no landing has.
var ErrNoLanding = advice.With(errors.New("no such landing"), "`netsky land ls` lists them")

// An Undone is what Undo did.
type Undone struct {
	record.Landing
	Reverted bool     `json:"reverted"`        // by a commit, as others have built on the landing
	Again    string   `json:"again,omitempty"` // how it lands again, if git takes it for merged
	Notes    []string `json:"notes,omitempty"`
}

// ShortID is the fewest characters that may stand for a landing's id.
const ShortID = 4

// find returns the landing with that id, or the only one whose id begins so, with ShortID characters or
// more.
func (d Desk) find(ctx context.Context, id string) (l record.Landing, err error) {
	err = d.records(ctx, func(r record.Records) error {
		list, err := r.Landings(ctx, record.Filter{ID: id, Limit: 2})
		switch {
		case err != nil:
			return err
		case id == "" || len(list) == 0:
			return fmt.Errorf("%q: %w", id, ErrNoLanding)
		case len(id) < ShortID && list[0].ID != id && list[len(list)-1].ID != id:
			return advice.With(fmt.Errorf("%q: the beginning of a landing's id needs at least %d characters", id, ShortID), "`netsky land ls` lists them")
		case len(list) > 1 && list[0].ID != id && list[1].ID != id:
			return advice.With(fmt.Errorf("%q: more than one landing begins so", id), "`netsky land ls` lists them")
		}
		l = list[0]
		if len(list) > 1 && list[1].ID == id {
			l = list[1]
		}
		return nil
	})
	if err == nil && l.ID == "" {
		err = fmt.Errorf("%q: %w", id, ErrNoLanding)
	}
	return l, err
}

// Undo takes a landing back: the target moves back to where it was, or, if others have built on it, a
// commit reverses it. What had landed stays on the agent's branch, or below refs/netsky/retired. If it
// returns an error, nothing has moved.
func (d Desk) Undo(ctx context.Context, id string) (u Undone, err error) {
	lock, err := d.Home.WaitLock(ctx, home.LandingLock, d.Wait)
	if err != nil {
		return u, err
	}
	defer lock.Unlock()
	j := journal{d, lock}
	if err := j.recover(ctx); err != nil {
		return u, err
	}
	l, err := d.find(ctx, id)
	if err != nil {
		return u, err
	}
	u.Landing = l
	switch l.State {
	case record.Landed:
	case record.Undone:
		return u, fmt.Errorf("%s: was undone already", l.ID)
	case record.Pushed:
		return u, fmt.Errorf("%s: was pushed for others to merge, and moved nothing here: close the request instead", l.ID)
	default:
		return u, fmt.Errorf("%s: moved nothing (%s)", l.ID, l.State)
	}
	r, err := d.repository(ctx, l.Repo)
	if err != nil {
		return u, fmt.Errorf("%s: its repository: %w", l.ID, err)
	}
	now, err := commitOf(ctx, l.Repo, l.Target)
	switch {
	case err != nil:
		return u, fmt.Errorf("%s: its repository: %w", l.ID, err)
	case now == "":
		return u, fmt.Errorf("%s: there is no branch %s any more", l.ID, git.Branch(l.Target))
	case !ancestor(ctx, l.Repo, l.After, now):
		return u, refusef("%s: %s is at %s, which does not hold what landed", l.ID, git.Branch(l.Target), short(now))
	}
	mv := move{Repo: l.Repo, Ref: l.Target, From: now, To: l.Before, Why: fmt.Sprintf("netsky: undo %s (%s)", l.ID, l.Agent)}
	if mv.Dir, err = checkedOut(ctx, r, l.Target); err != nil {
		return u, fmt.Errorf("%s: %w", l.ID, err)
	}
	if mv.Hooks, err = d.hooks(ctx, r, mv.Dir); err != nil {
		return u, fmt.Errorf("%s: %w", l.ID, err)
	}
	if err := mv.ready(ctx); err != nil {
		return u, fmt.Errorf("%s: %w", l.ID, err)
	}
	if now != l.After {
		u.Reverted = true
		if mv.To, err = d.reverse(ctx, r, l, now); err != nil {
			return u, fmt.Errorf("%s: not undone: %w", l.ID, err)
		}
	} else if err := retire(ctx, r, l.Agent, l.After); err != nil {
		return u, fmt.Errorf("%s: not undone: %w", l.ID, err)
	}
	d.step("built")
	if err := j.carry(ctx, entry{For: toUndo, Move: mv, Landing: l}); err != nil {
		return u, fmt.Errorf("%s: not undone: %w", l.ID, err)
	}
	u.State, u.Undo = record.Undone, mv.To
	if u.Reverted {
		u.Again = Again(u.Landing)
		if note := mv.merged(context.WithoutCancel(ctx)); note != "" {
			u.Notes = append(u.Notes, note)
		}
	}
	return u, nil
}

// repository returns the repository with that git directory, as seen from the owner's directory, if a
// worktree that was made from there still tells.
func (d Desk) repository(ctx context.Context, common string) (git.Repo, error) {
	list, _ := tree.List(d.Home) // one that can't be read tells nothing
	for _, w := range list {
		if w.Repo != common {
			continue
		}
		r, err := git.Open(ctx, w.Main, "")
		if err == nil && r.Common == common {
			return r, nil
		}
		if errors.Is(err, git.ErrBare) {
			return r, bare(w)
		}
	}
	return git.Repo{Top: common, Common: common}, nil
}

// reverse makes a commit on top of the target that takes back all that the landing brought. It
// merges what is there now with what was before, on the base of what landed, so that it does not
// matter how many commits that were, and of which kind.
func (d Desk) reverse(ctx context.Context, r git.Repo, l record.Landing, now string) (string, error) {
	g := r.Look()
	g.Env = nobody
	base, err := g.First(ctx, "commit-tree", l.After+"^{tree}", "-m", "what landed")
	if err != nil {
		return "", fmt.Errorf("git commit-tree: %w", err)
	}
	m := Merge{Target: l.Target, Branch: "what was before"}
	for tree, to := range map[string]*string{now: &m.Onto, l.Before: &m.Head} {
		if *to, err = g.First(ctx, "commit-tree", tree+"^{tree}", "-p", base, "-m", "a side"); err != nil {
			return "", fmt.Errorf("git commit-tree: %w", err)
		}
	}
	// A driver that keeps both sides would take nothing back.
	by, done, err := tree.Attributed(ctx, g, now, "* merge=text")
	if err == nil {
		err = m.compute(ctx, by)
		done()
	}
	if err != nil {
		return "", fmt.Errorf("git merge-tree: %w", err)
	}
	if own, err := g.First(ctx, "rev-parse", now+"^{tree}"); err != nil || m.Tree == own {
		return "", errors.Join(refusef("taking it back would change nothing on %s", git.Branch(l.Target)), err)
	}
	if n := len(m.Conflicts); n > 0 {
		var names []string
		for _, k := range m.Conflicts[:min(maxNamed, n)] {
			names = append(names, git.Shown(k.File))
		}
		how := fmt.Sprintf("git revert %s..%s", short(l.Before), short(l.After))
		if l.How == Merging {
			how = "git revert -m 1 " + short(l.After)
		}
		return "", advice.With(refusef("what came after it conflicts with taking it back, in %s: %s", files(n), strings.Join(names, ", ")),
			"`%s` on %s, and resolve the conflicts", how, git.Branch(l.Target))
	}
	text := fmt.Sprintf("Revert what landed from %s\n\nThis reverts %s..%s, landing %s.", l.Agent, short(l.Before), short(l.After), l.ID)
	return maker{d, r, newID()}.commit(ctx, commit{tree: m.Tree, onto: now, message: text})
}

// Reversed returns what a branch, at head, last landed on the target, if a commit on the target has
// undone that and still counts. Git takes such work for merged, so it has nothing to land.
func Reversed(ctx context.Context, rec record.Records, w tree.Worktree, target, head string) (l record.Landing, is bool, err error) {
	list, err := rec.Landings(ctx, record.Filter{Agent: w.Agent, Limit: 100})
	if err != nil {
		return l, false, err
	}
	for _, l := range list {
		if l.State != record.Landed && l.State != record.Undone || l.Repo != w.Repo || l.Target != target {
			continue
		}
		if l.State == record.Landed || !l.Reversed() || !ancestor(ctx, w.Repo, l.Undo, target) || ancestor(ctx, w.Repo, l.Undo, head) {
			return l, false, nil
		}
		// Git names the commit in the message of one that reverts it.
		back, err := git.Dir{Path: w.Repo}.First(ctx, "log", "-1", "--no-show-signature", "--format=%H", "--fixed-strings", "--grep="+l.Undo, l.Undo+".."+target)
		return l, err == nil && back == "", err
	}
	return l, false, nil
}

// nothing says that there is nothing to land, and how what was undone can land again.
func (d Desk) nothing(ctx context.Context, w tree.Worktree, m Merge) error {
	err := fmt.Errorf("%s: %w on %s", w.Agent, ErrNothing, git.Branch(m.Target))
	if m.Upstream != "" {
		return advice.With(fmt.Errorf("%w: %s, which it follows, has all of it", err, m.Upstream), "`git pull` on %s brings it there", git.Branch(m.Target))
	}
	rerr := d.records(ctx, func(rec record.Records) error {
		l, is, rerr := Reversed(ctx, rec, w, m.Target, m.Head)
		if is {
			err = advice.With(fmt.Errorf("%w: what landed as %s was undone there by %s", err, l.ID, short(l.Undo)), "%s", Again(l))
		}
		return rerr
	})
	if rerr != nil {
		d.say("%s: whether its work was undone: %v", w.Agent, rerr)
	}
	return err
}

// Again says how what a commit has undone lands again.
func Again(l record.Landing) string {
	return fmt.Sprintf("`git revert %s` on %s lands it again", short(l.Undo), git.Branch(l.Target))
}
