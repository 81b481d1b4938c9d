// Package record keeps the records of what became of the agents' work: their worktrees, the checks
// that were run on it, what landed and what was undone, and remarks on it that wait to be sent.
//
// Git is the truth about branches and commits; nothing here says how a branch is now. Each record
// is written before what it tells of begins, in the state that says so, and again when it has
// ended: one that a crash left in the first state tells what has to be looked at. They are ops of
// package store, so that a verb goes on with a database that is broken. The package decides
// nothing; package store removes what is old.
package record

import (
	"context"
	"database/sql"

	"netsky/agent"
	"netsky/store"
)

// The states of a worktree.
const (
	Live    = "live"
	Retired = "retired"
)

// A Worktree is the git worktree that an agent works in.
type Worktree struct {
	Agent   agent.ID   `json:"agent"`
	Repo    string     `json:"repo"`   // the git directory that the worktrees of a repository share
	Dir     string     `json:"dir"`    // its root
	Branch  string     `json:"branch"` // a full ref name
	Base    string     `json:"base"`   // the branch that it was made from and lands on; a full ref name
	State   string     `json:"state"`
	Made    store.Time `json:"made"`
	Changed store.Time `json:"changed"`
}

// The states of a check.
const (
	Running = "running" // or killed
	Passed  = "passed"
	Failed  = "failed" // the command ended with another status than 0
	Broken  = "broken" // it could not be run, or not to its end
)

// A Check is one run of the check command on the tree that a landing would make.
type Check struct {
	ID      string     `json:"id"`
	Agent   agent.ID   `json:"agent"`
	Task    string     `json:"task,omitempty"`
	Repo    string     `json:"repo"`
	Target  string     `json:"target"` // the ref that the branch lands on
	Base    string     `json:"base"`   // its commit
	Head    string     `json:"head"`   // the branch's commit
	Tree    string     `json:"tree"`   // of both merged
	Command string     `json:"command"`
	Digest  string     `json:"digest"` // of the command
	State   string     `json:"state"`
	Status  int        `json:"status"`           // the command's exit status
	Reason  string     `json:"reason,omitempty"` // how it ended, if not by one
	Log     string     `json:"log,omitempty"`    // below the home
	Asker   agent.ID   `json:"asker"`
	Started store.Time `json:"started"`
	Ended   store.Time `json:"ended,omitzero"`
}

// The states of a landing.
const (
	Begun  = "begun"  // the target may or may not have moved
	Landed = "landed" // it has
	Pushed = "pushed" // the branch was pushed for others to merge
	Undone = "undone"
	Void   = "void" // the target did not move
)

// Newest returns the first check of a list, which is the newest, that came to a result by the
// command of that digest; the zero Check if there is none.
func Newest(list []Check, digest string) Check {
	for _, k := range list {
		if k.Digest == digest && (k.State == Passed || k.State == Failed) {
			return k
		}
	}
	return Check{}
}

// A Landing is one branch that landed.
type Landing struct {
	ID       string     `json:"id"`
	Agent    agent.ID   `json:"agent"`
	Task     string     `json:"task,omitempty"`
	Repo     string     `json:"repo"`
	Target   string     `json:"target"` // the ref that moved
	How      string     `json:"how"`    // merge, squash, rebase, fast-forward, push
	Base     string     `json:"base"`   // the merge base
	Head     string     `json:"head"`   // the branch's commit
	Tree     string     `json:"tree"`   // the target's, afterwards
	Before   string     `json:"before"` // the target's commit
	After    string     `json:"after,omitempty"`
	Evidence string     `json:"evidence,omitempty"` // the id of the check that passed; "" is none
	State    string     `json:"state"`
	Undo     string     `json:"undo,omitempty"` // the target's commit after it was undone
	URL      string     `json:"url,omitempty"`  // of the request to merge it
	Reason   string     `json:"reason,omitempty"`
	Asker    agent.ID   `json:"asker"`
	Started  store.Time `json:"started"`
	Ended    store.Time `json:"ended,omitzero"`
	Undone   store.Time `json:"undone,omitzero"`
}

// Reversed reports whether the landing was undone by a commit on top, not by moving the target back.
func (l Landing) Reversed() bool { return l.State == Undone && l.Undo != "" && l.Undo != l.Before }

// The states of a comment.
const (
	Pending = "pending"
	Sent    = "sent"
	Dropped = "dropped"
)

// A Comment is a remark on one line of an agent's branch.
type Comment struct {
	ID      string     `json:"id"`
	Agent   agent.ID   `json:"agent"` // whose work it is about
	File    string     `json:"file"`
	Line    int        `json:"line"`
	Old     bool       `json:"old,omitempty"` // of the file as it was at the merge base
	Head    string     `json:"head"`          // the branch's commit when it was written
	Excerpt string     `json:"excerpt,omitempty"`
	Text    string     `json:"text"`
	Author  agent.ID   `json:"author"`
	State   string     `json:"state"`
	Message string     `json:"message,omitempty"` // the id of the envelope it was sent in
	Created store.Time `json:"created"`
	Ended   store.Time `json:"ended,omitzero"`
}

// SetWorktree records the agent's worktree as it is now.
var SetWorktree = store.Define("worktree", func(w Worktree, now store.Time) Worktree {
	w.Changed = or(w.Changed, now)
	w.Made = or(w.Made, w.Changed)
	return w
}, func(c *sql.Conn, w Worktree) error {
	if !w.Agent.IsAgent() {
		return store.Invalid("a worktree of %q", w.Agent)
	}
	return exec(c, `INSERT INTO worktrees (agent, repo, dir, branch, base, state, made, changed) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (agent) DO UPDATE SET repo = excluded.repo, dir = excluded.dir, branch = excluded.branch, base = excluded.base,
			state = excluded.state, made = excluded.made, changed = excluded.changed WHERE excluded.changed >= changed`,
		w.Agent, w.Repo, w.Dir, w.Branch, w.Base, w.State, w.Made, w.Changed)
})

// SetCheck records a check: that it began, and how it ended. What has ended stays so.
var SetCheck = store.Define("check", func(k Check, now store.Time) Check {
	k.Started = or(k.Started, now)
	if k.State != Running {
		k.Ended = or(k.Ended, now)
	}
	return k
}, func(c *sql.Conn, k Check) error {
	if k.ID == "" || k.Tree == "" {
		return store.Invalid("check %q of the tree %q", k.ID, k.Tree)
	}
	return exec(c, `INSERT INTO checks (id, agent, task, repo, target, base, head, tree, command, digest, state, status, reason, log, asker, started, ended)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET state = excluded.state, status = excluded.status, reason = excluded.reason, ended = excluded.ended
			WHERE state = 'running'`,
		k.ID, k.Agent, k.Task, k.Repo, k.Target, k.Base, k.Head, k.Tree, k.Command, k.Digest, k.State, k.Status, k.Reason, k.Log, k.Asker, k.Started, k.Ended)
})

// SetLanding records a landing: that it begins, how it ended, that it was undone. A later state is
// not replaced by an earlier one.
var SetLanding = store.Define("landing", func(l Landing, now store.Time) Landing {
	l.Started = or(l.Started, now)
	if l.State != Begun {
		l.Ended = or(l.Ended, now)
	}
	if l.State == Undone {
		l.Undone = or(l.Undone, now)
	}
	return l
}, func(c *sql.Conn, l Landing) error {
	if l.ID == "" || l.Target == "" {
		return store.Invalid("landing %q on %q", l.ID, l.Target)
	}
	return exec(c, `INSERT INTO landings (id, agent, task, repo, target, how, base, head, tree, before, after, evidence, state, undo, url, reason, asker, started, ended, undone)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET how = excluded.how, tree = excluded.tree, after = excluded.after, state = excluded.state, undo = excluded.undo,
			url = excluded.url, reason = excluded.reason, ended = excluded.ended, undone = excluded.undone
			WHERE state = 'begun' OR excluded.state = 'undone' OR state = excluded.state`,
		l.ID, l.Agent, l.Task, l.Repo, l.Target, l.How, l.Base, l.Head, l.Tree, l.Before, l.After, l.Evidence, l.State, l.Undo, l.URL, l.Reason, l.Asker,
		l.Started, l.Ended, l.Undone)
})

// SetComment records a comment, and what became of it. What was sent stays so, and the message that it is
// to be sent in stays the first one.
var SetComment = store.Define("comment", func(k Comment, now store.Time) Comment {
	k.Created = or(k.Created, now)
	if k.State != Pending {
		k.Ended = or(k.Ended, now)
	}
	return k
}, func(c *sql.Conn, k Comment) error {
	if k.ID == "" || k.Text == "" {
		return store.Invalid("comment %q without words", k.ID)
	}
	return exec(c, `INSERT INTO comments (id, agent, file, line, old, head, excerpt, text, author, state, message, created, ended)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET state = excluded.state, message = iif(message = '', excluded.message, message), ended = excluded.ended WHERE state = 'pending'`,
		k.ID, k.Agent, k.File, k.Line, k.Old, k.Head, k.Excerpt, k.Text, k.Author, k.State, k.Message, k.Created, k.Ended)
})

func or(t, other store.Time) store.Time {
	if t == 0 {
		return other
	}
	return t
}

func exec(c *sql.Conn, query string, args ...any) error {
	_, err := c.ExecContext(context.Background(), query, args...)
	return err
}
