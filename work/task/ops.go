package task

import (
	"context"
	"database/sql"

	"netsky/store"
)

type freed struct {
	Task string `json:"task"`
}

// Free records that a task waits for no other any more.
func Free(task string) store.Op { return free(freed{task}) }

var free = store.Define("free_task", func(v freed, _ store.Time) freed { return v }, func(c *sql.Conn, v freed) error {
	_, err := c.ExecContext(context.Background(), "DELETE FROM task_dependencies WHERE task = ?", v.Task)
	return err
})

// Needs lists the tasks that have to be done before this one, the oldest first.
func (b Book) Needs(ctx context.Context, id string) (list []store.Task, err error) {
	deps, err := b.Records.Dependencies(ctx, id)
	for _, d := range deps {
		if d.Task != id {
			continue
		}
		if k, err := b.Records.Task(ctx, d.Needs); err == nil { // else it was removed long after its end
			list = append(list, k)
		}
	}
	return list, err
}

// Unfinished lists those of them that are not done yet, or not enough for this one to start.
func (b Book) Unfinished(ctx context.Context, id string) (list []store.Task, err error) {
	all, err := b.Needs(ctx, id)
	for _, k := range all {
		if k.State != store.TaskDone || b.Enough != nil && !b.Enough(ctx, k) {
			list = append(list, k)
		}
	}
	return list, err
}
