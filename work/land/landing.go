package land

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/store"
	"netsky/work/git"
	"netsky/work/record"
	"netsky/work/tree"
)

// LandOptions say how an agent's work lands.
type LandOptions struct {
	How       string `json:"how,omitempty"`       // Merging, Squash or Rebase; "" is Forward if that is possible, else Merging
	Onto      string `json:"onto,omitempty"`      // the branch; "" is the worktree's own
	Unchecked bool   `json:"unchecked,omitempty"` // without a check that has passed, which is recorded
	PR        bool   `json:"pr,omitempty"`        // push the branch and ask for it to be merged, instead of moving the target
	Task      string `json:"task,omitempty"`
	Message   string `json:"message,omitempty"` // of the commit that is made; "" is made from the branch's commits
}

// A Landing is what Land did.
type Landing struct {
	record.Landing
	Loose Loose    `json:"loose"`
	Notes []string `json:"notes,omitempty"`
}

// Land moves the target to the agent's work, which must have passed the check as it would be merged
// now. If it returns an error, nothing has moved.
func (d Desk) Land(ctx context.Context, id agent.ID, o LandOptions) (l Landing, err error) {
	lock, err := d.Home.WaitLock(ctx, home.LandingLock, d.Wait)
	if err != nil {
		return l, err
	}
	defer lock.Unlock()
	j := journal{d, lock}
	if err := j.recover(ctx); err != nil {
		return l, err
	}
	w, r, err := d.worktree(ctx, id)
	if err != nil {
		return l, err
	}
	target, err := Target(w, o.Onto)
	if err != nil {
		return l, err
	}
	m, err := Merged(ctx, r, w, target)
	if err != nil {
		return l, err
	}
	if l.Loose, err = LooseIn(ctx, w); err != nil {
		return l, err
	}
	switch {
	case len(m.Conflicts) > 0:
		err := &ConflictError{Who: string(id), Merge: m}
		d.tell(id, m, err)
		return l, err
	case m.Landed:
		return l, d.nothing(ctx, w, m)
	}
	evidence, err := d.proved(ctx, id, r.Common, m, o)
	if err != nil {
		return l, err
	}
	l.Landing = record.Landing{
		ID: newID(), Agent: id, Task: o.Task, Repo: r.Common, Target: m.Target, How: o.How, Base: m.Base, Head: m.Head, Tree: m.Tree, Before: m.Onto,
		Evidence: evidence, State: record.Begun, Asker: d.Asker, Started: store.At(time.Now()),
	}
	l.Notes = m.lacking(ctx, r)
	if o.PR && w.Away != nil {
		m.Branch = "refs/heads/netsky/" + string(w.Agent.Local()) + "-" + w.Agent.Host()
	}
	if o.PR {
		return l, pusher{d, r, m}.push(ctx, w, o, &l)
	}
	err = j.land(ctx, r, w, m, o, &l)
	if de := new(DirtyError); errors.As(err, &de) {
		de.Landing = true
		if strays, serr := w.Strays(ctx, d.Home); serr == nil && de.Dir == w.Main {
			de.By, de.Strayed = id, slices.DeleteFunc(strays, func(name string) bool { return !slices.Contains(de.Files, name) })
		}
	}
	return l, err
}

// errUnproved is what lacks for a landing, most often.
var errUnproved = errors.New("no check has passed")

// proved returns the id of the check that allows the landing.
func (d Desk) proved(ctx context.Context, id agent.ID, repo string, m Merge, o LandOptions) (string, error) {
	k, ok, err := d.Evidence(ctx, repo, m.Tree)
	switch {
	case ok:
		return k.ID, nil
	case o.Unchecked:
		return "", nil
	case err != nil:
		return "", fmt.Errorf("%s: whether its check has passed: %w", id, err)
	case d.Command.Text == "":
		return "", advice.With(refusef("%s: %w", id, ErrNoCheck), "`netsky check %s%s --set \"COMMAND\"` sets one; or `netsky land %[1]s%[2]s --unchecked`, which is recorded", id, onto(o.Onto))
	case k.State == record.Failed:
		return "", advice.With(refusef("%s: the check %s has failed", id, k.ID), "its output is in %s", d.Home.Path(k.Log))
	}
	return "", advice.With(refusef("%s: %w on what %s would be now (%s merged into %s at %s)", id, errUnproved, git.Branch(m.Target), short(m.Head), git.Branch(m.Target), short(m.Onto)),
		"run `netsky check %s%s`", id, onto(o.Onto))
}

// onto repeats the option by which a target was named.
func onto(name string) string {
	if name == "" {
		return ""
	}
	return " --onto " + advice.Word(name)
}

// tell sends the agent what its branch conflicts in, once.
func (d Desk) tell(id agent.ID, m Merge, conflict error) {
	if d.Tell == nil {
		return
	}
	text := fmt.Sprintf("%v\n\nYour work cannot land as it is. Merge %s into your branch %s, resolve these, run the check again, and say so.\n(%s at %s, your branch at %s)",
		conflict, git.Branch(m.Target), git.Branch(m.Branch), git.Branch(m.Target), short(m.Onto), short(m.Head))
	if id.Host() != "" { // where there are no branches of this repository
		text = fmt.Sprintf("%v\n\nYour work cannot land as it is. Merge %s, which is %s here, into your branch, resolve these, and say so.\n(%s at %s, your branch at %s)",
			conflict, tree.BaseRef(id), git.Branch(m.Target), git.Branch(m.Target), short(m.Onto), short(m.Head))
	}
	if err := d.Tell(id, "conflict-"+envelope.Digest(m.Onto, m.Head), text); err != nil {
		d.say("%s was not told: %v", id, err)
	}
}

// land makes the commit and moves the target to it.
func (d journal) land(ctx context.Context, r git.Repo, w tree.Worktree, m Merge, o LandOptions, l *Landing) error {
	mv := move{Repo: r.Common, Ref: m.Target, From: m.Onto, Why: fmt.Sprintf("netsky: land %s (%s)", l.Agent, l.ID)}
	var err error
	if mv.Dir, err = checkedOut(ctx, r, m.Target); err != nil {
		return fmt.Errorf("%s: %w", l.Agent, err)
	}
	if mv.Hooks, err = d.hooks(ctx, r, mv.Dir); err != nil {
		return fmt.Errorf("%s: %w", l.Agent, err)
	}
	mv.To = m.Tree // whatever the commit will be, these are its files
	if err := mv.ready(ctx); err != nil {
		return fmt.Errorf("%s: %w", l.Agent, err)
	}
	if err := signed(ctx, r, m); err != nil {
		return fmt.Errorf("%s: not landed: %w", l.Agent, err)
	}
	text, err := message(ctx, r, w, m, o.How, o.Message)
	if err != nil {
		return fmt.Errorf("%s: %w", l.Agent, err)
	}
	if l.After, l.How, err = (maker{d.Desk, r, l.ID}).build(ctx, m, o.How, text); err != nil {
		return fmt.Errorf("%s: not landed: %w", l.Agent, err)
	}
	d.step("built")
	mv.To = l.After
	if err := d.carry(ctx, entry{For: toLand, Move: mv, Landing: l.Landing}); err != nil {
		l.State = record.Void
		return fmt.Errorf("%s: not landed: %w", l.Agent, err)
	}
	l.State, l.Ended = record.Landed, store.At(time.Now())
	if note := mv.merged(context.WithoutCancel(ctx)); note != "" {
		l.Notes = append(l.Notes, note)
	}
	then := d.follow
	if w.Away != nil {
		then = d.tellAway
	}
	if note := then(context.WithoutCancel(ctx), r, w, *l); note != "" {
		l.Notes = append(l.Notes, note)
	}
	return nil
}

// tellAway tells an agent on another host what its work has landed as: its branch there stays as it is. The
// note says so.
func (d journal) tellAway(_ context.Context, _ git.Repo, w tree.Worktree, l Landing) (note string) {
	if d.Tell != nil {
		text := fmt.Sprintf("Your work up to %.12s has landed on %s as %.12s. Your branch was left as it is: before you go on, merge %[3]s into it if your repository has that, or %[2]s once it does.",
			l.Head, git.Branch(l.Target), l.After)
		if err := d.Tell(w.Agent, "landed-"+l.ID, text); err != nil {
			return fmt.Sprintf("%s was not told that its work has landed: %v", w.Agent, err)
		}
	}
	return fmt.Sprintf("%s's branch on %s stays at %s", w.Agent.Local(), w.Agent.Host(), short(l.Head))
}

// hooks returns where the hooks are that run in a directory where the target is checked out; "" is where
// git finds them. An agent's directory, or a worktree that it has made in there, may have others, with a
// relative core.hooksPath.
func (d Desk) hooks(ctx context.Context, r git.Repo, dir string) (string, error) {
	work := d.Home.Path(home.WorkDir)
	for ; dir != "" && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if same(filepath.Dir(dir), work) {
			return r.HooksDir(ctx)
		}
	}
	return "", nil
}

// follow moves the agent's branch on to what it landed as, if the agent has nothing else there. Its
// earlier head is kept. The note says why it did not.
func (d journal) follow(ctx context.Context, r git.Repo, w tree.Worktree, l Landing) (note string) {
	stays := func(err error) string { return fmt.Sprintf("%s stays at %s: %v", w.Short(), short(l.Head), err) }
	own, err := d.Home.WaitLock(ctx, home.WorktreeLock(w.Agent), nil)
	if err != nil {
		return stays(err)
	}
	defer own.Unlock()
	mv := move{Repo: r.Common, Ref: w.Branch, From: l.Head, To: l.After, Why: fmt.Sprintf("netsky: landed as %s", l.ID)}
	if mv.Dir, err = checkedOut(ctx, r, w.Branch); err != nil {
		return stays(err)
	}
	loose, err := LooseIn(ctx, w)
	switch {
	case err != nil:
		return stays(err)
	case mv.Dir == "" || loose.Aside != "":
		return stays(errors.New("it is not checked out"))
	case filepath.Clean(mv.Dir) != filepath.Clean(w.Dir) && !same(mv.Dir, w.Dir):
		return stays(fmt.Errorf("it is checked out in %s", mv.Dir))
	case loose.Any():
		return stays(fmt.Errorf("%s has %v", w.Agent, loose))
	}
	acting, err := w.Acting(ctx)
	if err != nil {
		return stays(err)
	}
	mv.Hooks = acting.Hooks
	if l.Head == l.After {
		if err := tree.Moved(d.Home, w.Agent, l.After); err != nil {
			return err.Error()
		}
		return ""
	}
	if !ancestor(ctx, r.Common, l.Head, l.After) {
		if err := retire(ctx, r, w.Agent, l.Head); err != nil {
			return stays(err)
		}
	}
	if err := d.carry(ctx, entry{For: toFollow, Move: mv, Landing: l.Landing}); err != nil {
		return stays(err)
	}
	return ""
}

// Retired is where commits are kept that no branch leads to any more.
const Retired = "refs/netsky/retired/"

// retire keeps a commit.
func retire(ctx context.Context, r git.Repo, id agent.ID, commit string) error {
	ref := Retired + string(id) + "-" + commit[:min(12, len(commit))]
	d := git.Dir{Path: r.Common, Acts: true}
	if err := act(ctx, d, "update-ref", "--no-deref", "-m", "netsky: kept", ref, commit); err != nil {
		return fmt.Errorf("%s: %w", ref, err)
	}
	return nil
}
