package land

import (
	"context"
	"fmt"

	"netsky/internal/advice"
	"netsky/work/git"
	"netsky/work/record"
	"netsky/work/tree"
)

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
