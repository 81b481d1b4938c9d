package task

import (
	"cmp"
	"context"
	"slices"

	"netsky/agent"
	"netsky/store"
)

// A Filter selects tasks; empty fields match all.
type Filter struct {
	States   []string
	Assignee agent.ID
	Nobody   bool     // only those without an assignee
	Mine     agent.ID // assigned to it, or asked for by it
}

// List returns the tasks of each state in the order of the states: what is to be done in the order
// of priority, the older first; what has ended, the newest first.
func (b Book) List(ctx context.Context, f Filter) (list []store.Task, err error) {
	for _, state := range f.States {
		some, err := b.all(ctx, store.TaskFilter{State: state, Assignee: f.Assignee}, func(k store.Task) bool {
			return (!f.Nobody || k.Assignee == "") && (f.Mine == "" || k.Assignee == f.Mine || k.AskedBy == f.Mine)
		})
		if err != nil {
			return nil, err
		}
		ended := state == store.TaskDone || state == store.TaskCancelled
		slices.SortStableFunc(some, func(a, b store.Task) int {
			if ended {
				return cmp.Compare(b.Ended, a.Ended)
			}
			return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Created, b.Created))
		})
		list = append(list, some...)
	}
	return list, nil
}
