package record

import (
	"context"
	"database/sql"

	"netsky/store"
)

// Followed lists the ids of the tasks that something can happen to by itself: a brief of theirs is
// not answered, or they are to be started and what they need is done, or was cancelled. waiting is
// how many others are to be started one day.
func (r Records) Followed(ctx context.Context) (ids []string, waiting int, err error) {
	err = r.DB.Pool().QueryRowContext(ctx, "SELECT count(*) FROM tasks WHERE "+wanted).Scan(&waiting)
	if err != nil {
		return nil, 0, err
	}
	ids, err = store.Collect(ctx, r.DB.Pool(), func(rows *sql.Rows) (id string, err error) { err = rows.Scan(&id); return id, err },
		`SELECT id FROM (SELECT id, seq FROM tasks WHERE brief <> ''
			UNION SELECT id, seq FROM tasks AS t WHERE `+wanted+`
				AND (NOT EXISTS (SELECT 1 `+needed+` AND n.state <> 'done') OR EXISTS (SELECT 1 `+needed+` AND n.state = 'cancelled')))
		ORDER BY seq`)
	return ids, waiting, err
}

const (
	wanted = "state = 'open' AND starter <> ''"
	needed = "FROM task_dependencies d JOIN tasks n ON n.id = d.needs WHERE d.task = t.id"
)

// A Cost is what turns on a model have taken, in tokens; none is counted twice.
type Cost struct {
	Model      string `json:"model"`
	Turns      int    `json:"turns"`
	Input      int64  `json:"input"`
	Output     int64  `json:"output"`
	CacheRead  int64  `json:"cache_read"`
	CacheWrite int64  `json:"cache_write"`
}

// CostOf returns what a task has cost, the costliest model first.
func (r Records) CostOf(ctx context.Context, task string) ([]Cost, error) {
	return store.Collect(ctx, r.DB.Pool(), func(rows *sql.Rows) (c Cost, err error) {
		err = rows.Scan(&c.Model, &c.Turns, &c.Input, &c.Output, &c.CacheRead, &c.CacheWrite)
		return c, err
	}, `SELECT model, count(*), sum(input), sum(output), sum(cache_read), sum(cache_write) FROM turns
		WHERE task = ? AND task <> '' GROUP BY model ORDER BY sum(input + output + cache_read + cache_write) DESC`, task)
}
