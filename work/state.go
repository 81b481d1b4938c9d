// Package work says how the work of each agent is: what is not committed, what has not landed, what
// was checked, what it conflicts with.
//
// It is derived from git and the records each time; nothing is stored, so nothing can be out of date and
// a crash leaves nothing. It does not know what the agents are doing meanwhile.
package work

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/words"
	"netsky/store"
	"netsky/work/check"
	"netsky/work/git"
	"netsky/work/land"
	"netsky/work/merge"
	"netsky/work/record"
	"netsky/work/tree"
)

// The words for what was checked of an agent's work.
const (
	Checked   = land.Proved    // the tree that landing it would make, and nothing is left to commit
	Failed    = land.Failed    // that tree, and the command failed
	Stale     = land.Stale     // another: something was committed since, here or there, or is still to be
	Unchecked = land.Unchecked // nothing
)

// A Conflict is what the agent's work is in conflict with.
type Conflict struct {
	With  string   `json:"with"` // an agent, or the branch it lands on
	Files []string `json:"files"`
	More  int      `json:"more,omitempty"` // files that are not named

	target bool // With is a branch
}

// A State is how the work of one agent is.
type State struct {
	Agent  agent.ID `json:"agent"`
	State  string   `json:"state"`  // the first that is true: unknown, gone, conflict, dirty, ahead, undone, landed, clean
	Branch string   `json:"branch"` // without refs/heads/
	Base   string   `json:"base"`   // the branch it lands on; "" is none
	Dir    string   `json:"dir"`    // on its host
	// Seen is as of when it is what it is on another host; 0 is that it is here, and so as of now.
	Seen   store.Time `json:"seen,omitzero"`
	Main   string     `json:"main"` // the owner's directory that it was made from
	Head   string     `json:"head"`
	Target string     `json:"target"` // the commit of Base
	Dirty  int        `json:"dirty"`
	Ahead  int        `json:"ahead"`
	Behind int        `json:"behind"`
	Landed bool       `json:"landed"` // all that is committed
	// Undone says that what landed last was undone by a commit on Base, and that nothing came since.
	Undone bool `json:"undone,omitempty"`
	Gone   bool `json:"gone"` // its directory was deleted; what was committed is on the branch
	// Out is the branch that is checked out, if it is another; "HEAD" is none.
	Out   string `json:"checked_out,omitempty"`
	Amid  string `json:"amid,omitempty"`  // why none is: a rebase or bisection that is not finished
	Tree  string `json:"tree,omitempty"`  // that landing it would make; "" if that is a conflict
	Proof string `json:"proof,omitempty"` // checked, failed, stale, unchecked; "" if there is no check
	// Hidden is a file with changes that git was told not to look at; it is looked for once the check has passed.
	Hidden  string `json:"hidden,omitempty"`
	Stashed int    `json:"stashed,omitempty"` // stashes made on its branch, which all worktrees share
	// Elsewhere counts commits that carry its name and have not landed: on branches that are no agent's, and,
	// by "no branch, in DIR", in other worktrees.
	Elsewhere map[string]int `json:"elsewhere,omitempty"`
	// Beside counts the files that are not committed in other worktrees that it has added, by their directories.
	Beside map[string]int `json:"beside,omitempty"`
	// Strayed are files in Main that its program has changed there, and that are not committed.
	Strayed []string `json:"strayed,omitempty"`
	// Checking says that a check of it is running.
	Checking bool   `json:"checking,omitempty"`
	Here     string `json:"here,omitempty"` // the branch that is checked out in Main
	Up       bool   `json:"up,omitempty"`   // the agent runs, though its directory is gone
	// Conflicts counts what is not committed as well.
	Conflicts []Conflict `json:"conflicts"`
	Left      []string   `json:"left,omitempty"` // new files that were not looked at
	Error     string     `json:"error,omitempty"`
	Next      string     `json:"next,omitempty"` // the command that is the next step
	Does      string     `json:"-"`              // what Next does, as an instruction: "check agent1's work"
}

// Options say what a Reader reads beside git.
type Options struct {
	Records *record.Records // what was checked and undone; nil is not known
	Command check.Command   // the owner's check; without a text nothing is said of checks
	// Up reports whether the agent runs; nil is that none does. It is asked if a directory is gone.
	Up func(ctx context.Context, id agent.ID) bool
}

// A Reader derives states. One goroutine uses it.
type Reader struct {
	home home.Dir
	fc   *merge.Forecaster
	o    Options
}

// New returns a Reader. The caller must Close it.
func New(h home.Dir, o Options) *Reader { return &Reader{h, merge.New(h), o} }

// Set has the Reader read, beside git, what the options say.
func (r *Reader) Set(o Options) { r.o = o }

// Close removes what the Reader has used.
func (r *Reader) Close() error { return r.fc.Close() }

// States returns the states of all agents that have a worktree, in order. What can't be read of one is
// in its Error; the error is about what can't be told of any.
func (r *Reader) States(ctx context.Context) (list []State, err error) {
	c, err := r.fc.Look(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	list = []State{}
	out := make(map[string]string) // the branches in the owner's directories
	seen := make(map[string]beside)
	for _, s := range c.Sides {
		st := of(s)
		for _, k := range c.Conflicts {
			for _, id := range k.Agents {
				if id == s.Agent {
					st.Conflicts = append(st.Conflicts, Conflict{k.With(id), k.Files, k.More, k.With(id) == k.Target})
				}
			}
		}
		if s.Err == nil {
			if rerr := r.recorded(ctx, s, &st); rerr != nil {
				err = errors.Join(err, fmt.Errorf("%s: the records: %w", s.Agent, rerr))
			}
			if st.Out == "HEAD" {
				if st.Amid = amid(s); st.Amid != "" { // what the branch has is not what is checked out
					st.Landed = false
				}
			}
			if herr := hidden(ctx, s, &st); herr != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w", s.Agent, herr))
			}
			if _, known := out[s.Main]; !known {
				at, _ := git.Dir{Path: s.Main}.First(ctx, "symbolic-ref", "--quiet", "HEAD")
				out[s.Main] = git.Branch(at)
			}
			st.Here = out[s.Main]
			if _, known := seen[s.Repo]; !known {
				seen[s.Repo] = look(ctx, r.home, s.Repo, sides(c, s.Repo))
			}
			st.aside(ctx, r.home, s.Worktree, seen[s.Repo])
		}
		if _, st.Checking = r.home.LockHolder(home.CheckLock(s.Agent)); st.Gone && r.o.Up != nil {
			st.Up = r.o.Up(ctx, s.Agent)
		}
		st.judge(r.o.Command.Text != "")
		list = append(list, st)
	}
	return list, err
}

// recorded adds what the records say of the work.
func (r *Reader) recorded(ctx context.Context, s merge.Side, st *State) (err error) {
	if r.o.Records == nil {
		return nil
	}
	if s.Target != "" && (s.Ahead == 0 || s.Landed) {
		if _, st.Undone, err = land.Reversed(ctx, *r.o.Records, s.Worktree, s.Base, s.Head); err != nil {
			return err
		}
	}
	if r.o.Command.Text == "" || s.Ahead == 0 || s.Landed || st.Tree == "" {
		return nil
	}
	st.Proof, err = land.Said(ctx, *r.o.Records, r.o.Command, s.Worktree, st.Tree)
	if st.Proof == Checked && (st.Dirty > 0 || st.Out != "") {
		st.Proof = Stale
	}
	return err
}

// hidden looks for changes that git was told not to look at, for which no check counts.
func hidden(ctx context.Context, s merge.Side, st *State) error {
	if st.Proof != Checked || s.Gone || s.Away != nil {
		return nil
	}
	own, err := s.Git()
	if err == nil {
		st.Hidden, err = tree.Hidden(ctx, own.Look())
	}
	if err != nil || st.Hidden != "" {
		st.Proof = Stale
	}
	return err
}

// amid returns what git is in the middle of where no branch is checked out, "" if nothing is known.
func amid(s merge.Side) string {
	own, err := s.Git()
	if err != nil {
		return ""
	}
	for _, sign := range []struct{ file, what string }{{"rebase-merge", "rebase"}, {"rebase-apply", "rebase"}, {"BISECT_START", "bisection"}} {
		if _, err := os.Lstat(filepath.Join(own.Git, sign.file)); err == nil {
			return sign.what
		}
	}
	return ""
}

func of(s merge.Side) State {
	st := State{
		Agent: s.Agent, Branch: git.Branch(s.Branch), Base: git.Branch(s.Base), Dir: s.Dir, Main: s.Main, Head: s.Head, Target: s.Target,
		Dirty: s.Dirty, Ahead: s.Ahead, Behind: s.Behind, Landed: s.Landed, Gone: s.Gone, Conflicts: []Conflict{},
	}
	if s.Away != nil {
		st.Dir, st.Seen = s.Away.Dir, s.Away.Seen
	}
	for _, name := range s.Left {
		st.Left = append(st.Left, strings.ToValidUTF8(name, "\ufffd"))
	}
	if s.Lands.Err == nil && !s.Lands.Conflict {
		st.Tree = s.Lands.Tree
	}
	if s.Err == nil && s.Out != s.Branch {
		if st.Out = git.Branch(s.Out); st.Out == "" {
			st.Out = "HEAD"
		}
	}
	switch {
	case s.Err != nil:
		st.Error = s.Err.Error()
	case s.Lands.Err != nil:
		st.Error = s.Lands.Err.Error()
	}
	return st
}

// own reports whether the agent has committed work that has not landed.
func (st *State) own() bool { return st.Ahead > 0 && !st.Landed }

// Ready reports whether the work could be checked, or landed, now: all of it is committed, and merges.
func (st State) Ready() bool {
	return st.own() && st.Dirty == 0 && st.Tree != "" && st.Out == "" && st.Error == "" && !st.Gone && !st.Checking && st.Proof != Failed
}

// judge decides the state's word and the next step.
func (st *State) judge(checks bool) {
	id := string(st.Agent)
	switch {
	case st.Error != "":
		st.State = "unknown"
	case st.Gone:
		st.State, st.Next, st.Does = "gone", "netsky up "+id, "have "+id+"'s worktree made again"
		switch {
		case st.Up:
			st.Next = "netsky restart " + id
		case !st.own():
			st.Next, st.Does = "netsky work retire "+id, "remove what is left of "+id+"'s worktree"
		}
	case len(st.Conflicts) > 0:
		st.State = "conflict"
		st.Next, st.Does = st.step(checks)
		if slices.ContainsFunc(st.Conflicts, func(k Conflict) bool { return k.target }) {
			st.Next, st.Does = land.Resolve(id, st.Base), "have "+id+" resolve its conflicts with "+st.Base
		}
	case st.Dirty > 0:
		st.State = "dirty"
		st.Next, st.Does = st.step(checks)
	case st.own():
		st.State = "ahead"
		st.Next, st.Does = st.step(checks)
	case st.Undone:
		st.State = "undone"
	case st.Landed:
		st.State = "landed"
	default:
		st.State = "clean"
	}
	switch {
	case st.Next != "":
	case len(st.Elsewhere)+len(st.Beside) > 0:
		st.Next, st.Does = land.Return(id, st.Branch), "have "+id+" bring its work to its own branch"
	case len(st.Strayed) > 0:
		st.Next, st.Does = "git -C "+advice.Word(st.Main)+" status", "see what "+id+" has changed in "+st.Main
	}
}

// step is what could be done now to bring the work on its way: the command, and what that does.
func (st *State) step(checks bool) (line, does string) {
	id, onto := string(st.Agent), ""
	if st.Target == "" { // nothing to land on by itself
		onto = " --onto BRANCH"
		if st.Here != "" && st.Here != st.Branch {
			onto = " --onto " + advice.Word(st.Here)
		}
	}
	switch {
	case st.Out != "" && st.Out != "HEAD": // what lands is on its own branch
		return land.Return(id, st.Branch), "have " + id + " bring its work to its own branch"
	case st.Dirty > 0 || st.Proof == Failed:
		return "netsky diff " + id, "see what " + id + " has changed"
	case !checks:
		return "netsky check " + id + onto + " --set \"COMMAND\"", "set the command that checks work, and check " + id + "'s with it"
	case st.Proof == Checked:
		return "netsky land " + id + onto, "land " + id + "'s work"
	}
	return "netsky check " + id + onto, "check " + id + "'s work"
}

// fresh is how old what is known of another host's work may be without a word about that.
const fresh = time.Minute

// Facts are what is true of the work, in a few words each, what matters most first.
func (st State) Facts() (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if st.Error != "" {
		return []string{"unknown: " + st.Error}
	}
	if age := time.Since(st.Seen.Time()); st.Seen != 0 && age > fresh {
		add("as of %s ago", words.Ago(age))
	}
	if st.Gone {
		add("its directory is gone")
	}
	switch {
	case st.Amid != "":
		add("in the middle of a %s", st.Amid)
	case st.Out == "HEAD":
		add("no branch is checked out")
	case st.Out != "":
		add("on %s", st.Out)
	}
	if st.Dirty > 0 {
		add("dirty %d", st.Dirty)
	}
	list = append(list, st.Aside()...)
	if st.Stashed > 0 {
		add("stashed %d", st.Stashed)
	}
	if st.Hidden != "" {
		add("hidden changes in %s", git.Shown(st.Hidden))
	}
	switch {
	case st.own():
		add("ahead %d", st.Ahead)
	case st.Undone:
		add("undone")
	case st.Landed:
		add("landed")
	case st.Dirty == 0 && st.Amid == "":
		add("clean")
	}
	if st.Behind > 0 {
		add("behind %d", st.Behind)
	}
	switch {
	case st.Base == "":
		add("no branch to land on")
	case st.Target == "":
		add("%s, its target, is gone", st.Base)
	case st.Base != st.Here:
		add("lands on %s", st.Base)
	}
	if st.Checking {
		add("checking")
	} else if st.Proof != "" {
		add("%s", st.Proof)
	}
	for _, k := range st.Conflicts {
		var names []string
		for _, name := range k.Files {
			names = append(names, git.Shown(name))
		}
		files := strings.Join(names, ", ")
		if len(names) == 0 {
			files = "the names of directories"
		}
		if k.More > 0 {
			files += fmt.Sprintf(" and %d more", k.More)
		}
		add("conflicts with %s in %s", k.With, files)
	}
	return list
}
