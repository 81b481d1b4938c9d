package task

import (
	"cmp"
	"context"

	"netsky/agent"
	"netsky/store"
	"netsky/work/record"
)

// Words for a task beside the states that it is stored with.
const (
	Waiting = "waiting"         // to be started when what it needs is done
	Claimed = store.TaskClaimed // done, says its worker
	Proved  = "proved"          // the check has passed for it, merged into what is there now
	Landed  = "landed"          // its branch has landed since
	Done    = store.TaskDone    // says the owner
)

// A Judge decides what a task is called.
type Judge struct {
	Work record.Records
	// Check is the digest of the command that proves work; "" proves none.
	Check string
	// Current returns the tree that landing an agent's committed work now would make, and in which repository.
	// An error says that it is unknown, as it is while there is work that is not committed.
	Current func(ctx context.Context, id agent.ID) (repo, tree string, err error)
	// Owns reports whether an agent has changed anything between two commits, apart from what the branch had
	// that it landed on at before, or lands on if that is ""; nil: it has.
	Owns func(ctx context.Context, id agent.ID, begun, head, before string) bool
	// After is what a task must be called for those to start that need it: Claimed, Proved or Landed; "" is
	// Proved if there is a check, else Claimed.
	After string
	// Holds reports whether the target of a landing still has what landed; nil: it has.
	Holds func(ctx context.Context, l record.Landing) bool

	trees map[agent.ID]now // that were asked for
}

// A now is what landing would make; the zero now is unknown.
type now struct{ repo, tree string }

// Word returns what the task is called: its state, but "claimed" for what only its worker calls
// done, "proved" while evidence for the present tree is on record, "landed" once it has landed. What
// can't be found out is not claimed to be so.
func (j *Judge) Word(ctx context.Context, k store.Task) string {
	switch {
	case k.State == store.TaskOpen && k.Starter != "":
		return Waiting
	case k.Word() != Claimed || j == nil || j.Work.DB == nil || k.Assignee == "":
		return k.Word()
	case j.landed(ctx, k):
		return Landed
	case j.proved(ctx, k):
		return Proved
	}
	return Claimed
}

// Enough reports whether those may start that need a closed task. One for which its worker has changed nothing
// can't be proved or land, so its word is enough.
func (j *Judge) Enough(ctx context.Context, k store.Task) bool {
	after := j.Needed()
	if after == Claimed || k.Word() != Claimed {
		return k.State == store.TaskDone
	}
	switch j.Word(ctx, k) {
	case Landed:
		return true
	case Proved:
		return after == Proved
	}
	return !j.own(ctx, k, "")
}

// Needed returns what a task must be called for those to start that need it.
func (j *Judge) Needed() string {
	switch {
	case j == nil:
		return Claimed
	case j.After == "" && j.Check != "":
		return Proved
	}
	return cmp.Or(j.After, Claimed)
}

// own reports whether its worker has changed anything since the task was given to it, as far as that is
// known: without that, what proves or lands other work says nothing of this.
func (j *Judge) own(ctx context.Context, k store.Task, before string) bool {
	return k.Head != "" && k.Head != k.Begun && (j.Owns == nil || j.Owns(ctx, k.Assignee, k.Begun, k.Head, before))
}

// landed reports whether a landing has the task that still stands: one that names it, or, if its worker has committed
// anything for it, one of the very commit that it was at when it closed the task, or the first of its
// branch since, if that had commits then.
func (j *Judge) landed(ctx context.Context, k store.Task) bool {
	list, err := j.Work.Landings(ctx, record.Filter{Agent: k.Assignee, State: record.Landed})
	if err != nil {
		return false
	}
	first := record.Landing{Base: k.Head}
	for _, l := range list { // the newest first
		if l.Task == k.ID || l.Head == k.Head && j.own(ctx, k, l.Before) {
			return j.holds(ctx, l)
		}
		if l.Started >= k.Ended {
			first = l
		}
	}
	return first.ID != "" && first.Base != k.Head && j.own(ctx, k, first.Before) && j.holds(ctx, first)
}

func (j *Judge) holds(ctx context.Context, l record.Landing) bool {
	return j.Holds == nil || j.Holds(ctx, l)
}

// proved reports whether a check has passed for what landing would make of the worker's branch now.
func (j *Judge) proved(ctx context.Context, k store.Task) bool {
	n := j.now(ctx, k.Assignee)
	if n.tree == "" || !j.own(ctx, k, "") {
		return false
	}
	list, err := j.Work.Checks(ctx, record.Filter{Repo: n.repo, Tree: n.tree, Limit: 1000})
	return err == nil && j.Check != "" && record.Newest(list, j.Check).State == record.Passed
}

func (j *Judge) now(ctx context.Context, id agent.ID) now {
	if j.Current == nil {
		return now{}
	}
	if n, asked := j.trees[id]; asked {
		return n
	}
	repo, tree, err := j.Current(ctx, id)
	n := now{repo, tree}
	if err != nil {
		n = now{}
	}
	if j.trees == nil {
		j.trees = make(map[agent.ID]now)
	}
	j.trees[id] = n
	return n
}
