package store

import (
	"context"

	"netsky/agent/home"
)

// A Shelf is the records as a model's tools use them: what is written goes through
// the journal, which never fails for want of the database.
type Shelf struct {
	*Journal
	Home home.Dir
}

func reading[T any](ctx context.Context, s Shelf, read func(*DB) (T, error)) (T, error) {
	db, err := OpenRead(ctx, s.Home)
	if err != nil {
		var none T
		return none, err
	}
	defer db.Close()
	return read(db)
}

func (s Shelf) Task(ctx context.Context, id string) (Task, error) {
	return reading(ctx, s, func(db *DB) (Task, error) { return db.Task(ctx, id) })
}

func (s Shelf) Tasks(ctx context.Context, f TaskFilter) (List[Task], error) {
	return reading(ctx, s, func(db *DB) (List[Task], error) { return db.Tasks(ctx, f) })
}

func (s Shelf) Dependencies(ctx context.Context, task string) ([]Dependency, error) {
	return reading(ctx, s, func(db *DB) ([]Dependency, error) { return db.Dependencies(ctx, task) })
}

func (s Shelf) Notes(ctx context.Context, f NoteFilter) (List[Note], error) {
	return reading(ctx, s, func(db *DB) (List[Note], error) { return db.Notes(ctx, f) })
}
