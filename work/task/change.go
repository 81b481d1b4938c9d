package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/store"
)

// A Change is what is to become of a task; what is empty stays.
type Change struct {
	State           string   `json:"state,omitempty"`
	Title           *string  `json:"title,omitempty"`
	Note            string   `json:"note,omitempty"`
	Proof           string   `json:"proof,omitempty"`
	ActualMinutes   *int     `json:"actual_minutes,omitempty"`
	EstimateMinutes *int     `json:"estimate_minutes,omitempty"`
	Priority        *int     `json:"priority,omitempty"`
	Assignee        string   `json:"assignee,omitempty"` // an address, or Nobody
	Needs           []string `json:"needs,omitempty"`    // ids of tasks that it must wait for, too
}

// An Edit asks for a task to be changed.
type Edit struct {
	Task string `json:"task"` // an id, or its beginning
	Change
}

// An Edited is what an Edit did.
type Edited struct {
	Task    store.Task `json:"task"`
	Before  store.Task `json:"before"`
	Changed bool       `json:"changed"`        // false: it was so already
	Note    string     `json:"note,omitempty"` // what is left to say about its worker
}

// CheckState returns an error for a word that is no task's state.
func CheckState(state string) error {
	switch state {
	case store.TaskOpen, store.TaskInProgress, store.TaskBlocked, store.TaskDone, store.TaskCancelled:
		return nil
	}
	return fieldf("state", "%q: must be open, in_progress, blocked, done or cancelled", envelope.Line(state, 40))
}

// Update changes a task. changed is false if it was so already. If the error matches
// store.ErrSpooled, it will be so.
func (b Book) Update(ctx context.Context, id string, c Change) (before, after store.Task, changed bool, err error) {
	c.Note, c.Proof = strings.TrimSpace(c.Note), strings.TrimSpace(c.Proof)
	if err := errors.Join(within("note", c.Note), within("proof", c.Proof)); err != nil {
		return before, after, false, first(err)
	}
	k, err := b.Find(ctx, id)
	if err != nil {
		return k, k, false, err
	}
	head := "" // asked before the lock is taken, as git may be slow
	if (c.State == store.TaskDone || c.State == store.TaskInProgress) && b.Head != nil {
		head = b.Head(ctx, b.worker(k, c))
	}
	err = b.locked(ctx, func() error {
		if before, err = b.Records.Task(ctx, k.ID); err != nil {
			return err
		}
		after = before
		if err := b.mayChange(before); err != nil {
			return err
		}
		ops, err := b.apply(ctx, &after, c, head)
		if changed = len(ops) > 0; err != nil || !changed {
			return err
		}
		return b.Records.Record(ctx, ops...)
	})
	return before, after, changed, err
}

// worker returns who does the task once it is changed.
func (b Book) worker(k store.Task, c Change) agent.ID {
	to := strings.TrimSpace(c.Assignee)
	if id, err := agent.ParseArgAddress(to); err == nil {
		return id
	}
	if to == Nobody {
		return b.By
	}
	return cmp.Or(k.Assignee, b.By)
}

// apply changes the task, and returns what is to be recorded.
func (b Book) apply(ctx context.Context, k *store.Task, c Change, head string) (ops []store.Op, err error) {
	before := *k
	if err := b.assign(k, c.Assignee); err != nil {
		return nil, err
	}
	if c.Title != nil {
		if k.Title, err = titled(*c.Title); err != nil {
			return nil, err
		}
	}
	for _, n := range []struct{ to, from *int }{
		{&k.ActualMinutes, c.ActualMinutes}, {&k.EstimateMinutes, c.EstimateMinutes}, {&k.Priority, c.Priority},
	} {
		if n.from != nil {
			*n.to = *n.from
		}
	}
	if err := numbers(*k); err != nil {
		return nil, err
	}
	k.Proof = cmp.Or(c.Proof, k.Proof)
	if err := b.move(k, c, head, store.At(time.Now())); err != nil {
		return nil, err
	}
	if *k != before {
		ops = append(ops, newest(*k))
	}
	more, err := b.depend(ctx, *k, c.Needs)
	if ops = append(ops, more...); err != nil {
		return nil, err
	}
	if c.Note != "" {
		note := store.AddNote{About: k.ID, Author: string(b.By), Text: c.Note}
		if c.State == store.TaskBlocked {
			note = note.Because()
		}
		ops = append(ops, note)
	}
	return ops, nil
}

func (b Book) assign(k *store.Task, to string) error {
	before := k.Assignee
	switch to = strings.TrimSpace(to); to {
	case "":
		return nil
	case Nobody:
		k.Assignee = ""
	default:
		id, err := agent.ParseArg(to)
		if err != nil {
			return fieldf("assignee", "%v", err)
		}
		k.Assignee = id
	}
	if k.Assignee == before {
		return b.mayAssign(k.Assignee)
	}
	if k.Brief != "" {
		return fieldf("assignee", "%s has been given it and has not answered; starting the task gives it to another", before)
	}
	k.Begun = ""
	return b.mayAssign(k.Assignee)
}

// move changes the state of the task.
func (b Book) move(k *store.Task, c Change, head string, now store.Time) error {
	if c.State == "" {
		return nil
	}
	if err := CheckState(c.State); err != nil {
		return err
	}
	if c.State == k.State {
		if c.State == store.TaskDone && k.Word() != store.TaskDone && !b.Own {
			k.ClosedBy = b.By // who accepts what its worker has claimed
			if k.Word() == store.TaskDone {
				k.Ended = now
			}
		}
		if c.State == store.TaskBlocked {
			k.Starter = "" // by somebody's word now, whatever its worker still answers
		}
		return nil
	}
	if k.Ended != 0 {
		k.Begun = "" // what its worker did then is not done for it again
	}
	k.State, k.Ended, k.ClosedBy, k.Head = c.State, 0, "", ""
	if c.State != store.TaskInProgress {
		k.Starter = ""
	}
	switch c.State {
	case store.TaskInProgress:
		k.Begun = cmp.Or(k.Begun, head)
		k.Assignee = cmp.Or(k.Assignee, b.By)
		k.Started = cmp.Or(k.Started, now)
	case store.TaskBlocked:
		if c.Note == "" {
			return fieldf("note", "missing: say what blocks the task")
		}
	case store.TaskDone:
		if k.Proof == "" && b.By != agent.Owner { // whose word is enough
			return fieldf("proof", "missing: say what shows that the task is done, such as the command you ran and what it printed")
		}
		Close(k, b.By, head, now)
	case store.TaskCancelled:
		k.Ended = now
	}
	return nil
}

// Close makes the task one that somebody has closed. Where it was begun is not known of one that nobody
// has begun, so nothing shows that what its worker has committed is for it.
func Close(k *store.Task, by agent.ID, head string, now store.Time) {
	k.Begun = cmp.Or(k.Begun, head)
	k.State, k.ClosedBy, k.Head, k.Ended, k.Starter = store.TaskDone, by, head, now, ""
	if k.ActualMinutes == 0 && k.Started != 0 {
		k.ActualMinutes = max(1, int(now.Time().Sub(k.Started.Time()).Round(time.Minute)/time.Minute))
	}
}

// Alter changes a task in a way that has rules of its own: do gets it as it is, and returns what is
// to be recorded beside it. If do returns an error, nothing is changed.
func (b Book) Alter(ctx context.Context, id string, do func(k *store.Task) ([]store.Op, error)) (k store.Task, err error) {
	err = b.locked(ctx, func() error {
		if k, err = b.Records.Task(ctx, id); err != nil {
			return err
		}
		before := k
		ops, err := do(&k)
		if err != nil {
			return err
		}
		if k != before {
			ops = append([]store.Op{newest(k)}, ops...)
		}
		if len(ops) == 0 {
			return nil
		}
		return b.Records.Record(ctx, ops...)
	})
	return k, err
}

// newest returns the record of a task that was changed just now. It is none older than the one before it,
// which would stay otherwise, though the clock was set back.
func newest(k store.Task) store.Op {
	k.Updated = max(k.Updated, store.At(time.Now()))
	return store.UpsertTask(k)
}

// depend returns the records of what the task has to wait for, too.
func (b Book) depend(ctx context.Context, k store.Task, needs []string) (ops []store.Op, err error) {
	if len(needs) > maxNeeds {
		return nil, fieldf("needs", "%d, at most %d", len(needs), maxNeeds)
	}
	for _, id := range needs {
		needed, err := b.Find(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("needs: %w", err)
		}
		circle, err := b.way(ctx, needed.ID, k.ID)
		if err != nil {
			return nil, err
		}
		if len(circle) > 0 {
			return nil, fieldf("needs", "a circle: %s waits for %s", k.ID, strings.Join(circle, ", which waits for "))
		}
		ops = append(ops, store.AddDependency{Task: k.ID, Needs: needed.ID})
	}
	return ops, nil
}

// maxWay is how many tasks are looked at for a circle.
const maxWay = 5000

// way returns the tasks over which one waits for another, from the one to the other; nil if it
// does not.
func (b Book) way(ctx context.Context, from, to string) ([]string, error) {
	came := map[string]string{from: ""}
	for list := []string{from}; len(list) > 0; list = list[1:] {
		if list[0] == to {
			var way []string
			for at := to; at != ""; at = came[at] {
				way = append(way, at)
			}
			slices.Reverse(way)
			return way, nil
		}
		deps, err := b.Records.Dependencies(ctx, list[0])
		if err != nil {
			return nil, err
		}
		for _, d := range deps {
			if _, seen := came[d.Needs]; d.Task == list[0] && !seen {
				came[d.Needs] = d.Task
				list = append(list, d.Needs)
			}
		}
		if len(came) > maxWay {
			return nil, fieldf("needs", "%s waits for more than %d tasks", from, maxWay)
		}
	}
	return nil, nil
}
