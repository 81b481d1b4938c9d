package store

import (
	"context"
	"database/sql"

	"netsky/agent/home"
	"netsky/store/prune"
)

// Prune makes the next step of a pass, in one short transaction.
func (db *DB) Prune(ctx context.Context, p *prune.Pass) error {
	next := p.Clone() // the writer's own, in case ctx ends first
	err := db.apply(ctx, []Op{step{"prune", func(t *tx) error { return next.Step(t.conn) }}})
	if err == nil {
		*p = *next
	}
	return err
}

// Shorten gives a part of the file's free pages back to the disk.
func (db *DB) Shorten(ctx context.Context) error {
	return db.apply(ctx, []Op{step{"shorten", func(t *tx) error { return prune.Shorten(t.conn) }}})
}

// Space returns the size of the database.
func (db *DB) Space(ctx context.Context) (prune.Space, error) {
	return prune.Measure(ctx, db.read.Load())
}

// Rewrite makes a database shorter that Shorten can't. Others that write wait meanwhile.
func (db *DB) Rewrite(ctx context.Context) error {
	pool, err := sql.Open("sqlite3", dsn(db.home.Path(home.DBFile), "rw", "immediate", busyMS, writable))
	if err != nil {
		return err
	}
	defer pool.Close()
	return prune.Rewrite(ctx, pool)
}

// A step is upkeep, which is not spooled.
type step struct {
	what string
	do   func(*tx) error
}

func (s step) name() string      { return s.what }
func (s step) stamped(Time) Op   { return s }
func (s step) apply(t *tx) error { return s.do(t) }
