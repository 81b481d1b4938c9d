package task

import (
	"context"

	"netsky/home"
	"netsky/store"
)

// A Shelf is the records as tools and verbs for tasks use them: what is written goes through
// the journal, which never fails for want of the database.
type Shelf struct {
	*store.Journal
	Home home.Dir
}

func reading[T any](ctx context.Context, s Shelf, read func(*store.DB) (T, error)) (T, error) {
	db, err := store.OpenRead(ctx, s.Home)
	if err != nil {
		var none T
		return none, err
	}
	defer db.Close()
	return read(db)
}

func (s Shelf) Task(ctx context.Context, id string) (store.Task, error) {
	return reading(ctx, s, func(db *store.DB) (store.Task, error) { return db.Task(ctx, id) })
}

func (s Shelf) Tasks(ctx context.Context, f store.TaskFilter) (store.List[store.Task], error) {
	return reading(ctx, s, func(db *store.DB) (store.List[store.Task], error) { return db.Tasks(ctx, f) })
}

func (s Shelf) Dependencies(ctx context.Context, task string) ([]store.Dependency, error) {
	return reading(ctx, s, func(db *store.DB) ([]store.Dependency, error) { return db.Dependencies(ctx, task) })
}

func (s Shelf) Resolve(ctx context.Context, id string) (store.Subject, error) {
	return reading(ctx, s, func(db *store.DB) (store.Subject, error) { return db.Resolve(ctx, id) })
}

func (s Shelf) Notes(ctx context.Context, f store.NoteFilter) (store.List[store.Note], error) {
	return reading(ctx, s, func(db *store.DB) (store.List[store.Note], error) { return db.Notes(ctx, f) })
}
