package store

import (
	"context"
	"database/sql"

	"netsky/home"
)

// Prune makes the next step of a pass, in one short transaction.
func (db *DB) Prune(ctx context.Context, p *Pass) error {
	next := p.Clone() // the writer's own, in case ctx ends first
	err := db.apply(ctx, []Op{step{"prune", func(t *tx) error { return next.Step(t.conn) }}})
	if err == nil {
		*p = *next
	}
	return err
}

// Shorten gives a part of the file's free pages back to the disk.
func (db *DB) Shorten(ctx context.Context) error {
	return db.apply(ctx, []Op{step{"shorten", func(t *tx) error { return Shorten(t.conn) }}})
}

// Space returns the size of the database.
func (db *DB) Space(ctx context.Context) (Space, error) {
	return Measure(ctx, db.read.Load())
}

// Rewrite makes a database shorter that Shorten can't. Others that write wait meanwhile.
func (db *DB) Rewrite(ctx context.Context) error {
	pool, err := sql.Open("sqlite3", dsn(db.home.Path(home.DBFile), "rw", "immediate", busyMS, writable))
	if err != nil {
		return err
	}
	defer pool.Close()
	return Rewrite(ctx, pool)
}

// A step is upkeep, which is not spooled.
type step struct {
	what string
	do   func(*tx) error
}

func (s step) name() string      { return s.what }
func (s step) stamped(Time) Op   { return s }
func (s step) apply(t *tx) error { return s.do(t) }

// Do runs a function on the writer's connection, in a transaction, for phone/record, which
// has tables of its own. It is not spooled, and does not end with ctx once it has begun: with
// an error, nothing happened. It may be run again, so it must set all that it returns anew.
func (db *DB) Do(ctx context.Context, what string, do func(*sql.Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return db.apply(context.WithoutCancel(ctx), []Op{step{what, func(t *tx) error { return do(t.conn) }}})
}

// Pool returns the connections for reading, for the same package. It is to be asked for at
// each use, as the file may have been replaced.
func (db *DB) Pool() *sql.DB { return db.read.Load() }
