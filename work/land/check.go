package land

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/store"
	"netsky/work/check"
	"netsky/work/git"
	"netsky/work/record"
	"netsky/work/tree"
)

// A Checked is what Check found.
type Checked struct {
	record.Check
	Known bool     `json:"known"` // it had passed before, and was not run again
	Merge Merge    `json:"merge"`
	Loose Loose    `json:"loose"`
	Notes []string `json:"notes,omitempty"`
}

// A Loose is work in an agent's worktree that no check and no landing is about.
type Loose struct {
	Files  int    `json:"files"`            // that are not committed; a new directory counts once
	Hidden string `json:"hidden,omitempty"` // a file with changes that git was told not to look at
	Aside  string `json:"aside,omitempty"`  // what is checked out instead of the agent's branch
}

// Any reports whether there is any.
func (l Loose) Any() bool { return l.Files > 0 || l.Hidden != "" || l.Aside != "" }

// maxLoose is how many files are counted.
const maxLoose = 10_000

// LooseIn returns the work in the worktree that is not on its branch. A worktree that was deleted has
// none; one on another host has what it had when it was seen last.
func LooseIn(ctx context.Context, w tree.Worktree) (l Loose, err error) {
	if w.Away != nil {
		return Loose{Files: w.Away.Dirty, Aside: w.Away.Aside}, nil
	}
	own, err := w.Git()
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return l, fmt.Errorf("%s: %w", w.Agent, err)
	}
	at, commit, err := own.Head(ctx)
	if err != nil {
		return l, err
	}
	switch {
	case at == "":
		l.Aside = "the commit " + short(commit)
	case at != w.Branch:
		l.Aside = "the branch " + git.Branch(at)
	}
	if l.Files, err = own.Dirty(ctx, maxLoose); err == nil {
		l.Hidden, err = tree.Hidden(ctx, own.Look())
	}
	return l, err
}

// CheckOptions say what is checked, and for what.
type CheckOptions struct {
	Onto  string // the branch that the work would land on; "" is the worktree's own
	Task  string
	Again bool      // also if it has passed
	Out   io.Writer // gets the command's output as it comes; nil is nobody
}

// Check runs the check command on the tree that a landing would make now, unless it has passed
// there. A command that fails is no error; the check says so.
func (d Desk) Check(ctx context.Context, id agent.ID, o CheckOptions) (c Checked, err error) {
	if d.Command.Text == "" {
		return c, ErrNoCheck
	}
	d.Recover(ctx)
	w, r, err := d.worktree(ctx, id)
	if err != nil {
		return c, err
	}
	if err := d.due(ctx, r, w, o, &c); err != nil || c.Known {
		return c, err
	}
	if err := d.agreed(); err != nil {
		return c, err
	}
	lock, err := d.Home.Lock(home.CheckLock(id))
	if errors.Is(err, home.ErrLocked) {
		d.say("%s: a check of its work is running; waiting until it is done", id)
		if lock, err = d.Home.WaitLock(ctx, home.CheckLock(id), nil); err == nil {
			if err = d.due(ctx, r, w, o, &c); err != nil || c.Known {
				return c, errors.Join(err, lock.Unlock())
			}
		}
	}
	if err != nil {
		return c, err
	}
	defer lock.Unlock()
	m := c.Merge
	c.Check = record.Check{
		ID: newID(), Agent: id, Task: o.Task, Repo: r.Common, Target: m.Target, Base: m.Onto, Head: m.Head, Tree: m.Tree,
		Command: d.Command.Text, Digest: d.Command.Digest(), State: record.Running, Asker: d.Asker, Started: store.At(time.Now()),
	}
	c.Log = home.LogDir + "/check-" + c.ID + ".log"
	return c, d.runCheck(ctx, r, &c, o.Out)
}

// due looks at what a check would be of. It fails if there is nothing to check, and sets Known if
// that has passed.
func (d Desk) due(ctx context.Context, r git.Repo, w tree.Worktree, o CheckOptions, c *Checked) error {
	target, err := Target(w, o.Onto)
	if err != nil {
		return err
	}
	if c.Merge, err = Merged(ctx, r, w, target); err != nil {
		return err
	}
	if c.Loose, err = LooseIn(ctx, w); err != nil {
		return err
	}
	switch {
	case len(c.Merge.Conflicts) > 0:
		return &ConflictError{Who: string(w.Agent), Own: d.Asker == w.Agent, Merge: c.Merge}
	case c.Merge.Landed:
		return d.nothing(ctx, w, c.Merge)
	case o.Again:
		return nil
	}
	c.Check, c.Known, err = d.Evidence(ctx, r.Common, c.Merge.Tree)
	return err
}

// agreed makes sure that the owner has agreed to the command.
func (d Desk) agreed() error {
	ok, err := d.Command.Agreed(d.Home)
	if err == nil && !ok && d.Agree != nil {
		if err := d.Agree(); err != nil {
			return err
		}
		ok, err = d.Command.Agreed(d.Home)
	}
	if err != nil || !ok {
		return errors.Join(ErrAgree, err)
	}
	return nil
}

// runCheck runs the command in a scratch worktree, which exists as long as the record says running.
func (d Desk) runCheck(ctx context.Context, r git.Repo, c *Checked, out io.Writer) error {
	commit, err := mergedCommit(ctx, r, c.Merge)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Agent, err)
	}
	d.step("scratch")
	s, err := tree.NewScratch(ctx, d.Home, r, c.ID, commit)
	if err != nil {
		return fmt.Errorf("%s: a worktree for the check: %w", c.Agent, err)
	}
	defer func() {
		if err := s.Remove(context.WithoutCancel(ctx)); err != nil {
			d.say("%s: %v; the next check tries again to remove it", s.Dir, err)
		}
	}()
	if c.Notes, err = s.Include(ctx, r); err != nil {
		return fmt.Errorf("%s: a worktree for the check: %w", c.Agent, err)
	}
	c.Notes = append(c.Notes, c.Merge.lacking(ctx, r)...)
	d.step("running")
	d.record(ctx, record.SetCheck(c.Check))
	d.step("run")
	result, err := d.Command.Run(ctx, check.Options{Home: d.Home, Dir: s.Dir, Log: c.Log, Env: d.Environ, Within: d.Within, Out: out, Daemons: true})
	d.step("ran")
	c.Ended, c.Status, c.Reason = store.At(time.Now()), result.Status, result.Reason
	switch {
	case err != nil:
		c.State, c.Reason = record.Broken, err.Error()
	case result.Reason != "":
		c.State = record.Broken
	case result.Status != 0:
		c.State = record.Failed
	default:
		c.State = record.Passed
	}
	d.record(ctx, record.SetCheck(c.Check))
	d.step("recorded")
	return nil
}

// nobody makes commits that no branch ever holds.
var nobody = []string{"GIT_AUTHOR_NAME=netsky", "GIT_AUTHOR_EMAIL=netsky", "GIT_COMMITTER_NAME=netsky", "GIT_COMMITTER_EMAIL=netsky"}

// mergedCommit returns a commit of the merged tree, which nothing refers to.
func mergedCommit(ctx context.Context, r git.Repo, m Merge) (string, error) {
	if m.Base == m.Onto {
		return m.Head, nil
	}
	d := r.Look()
	d.Env = nobody
	return d.First(ctx, "commit-tree", m.Tree, "-p", m.Onto, "-p", m.Head, "-m", "Merge "+git.Branch(m.Branch)+" into "+git.Branch(m.Target)+", for a check")
}
