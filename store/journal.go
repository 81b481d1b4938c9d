package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"netsky/home"
)

// Errors returned by Journal.Record.
var (
	// ErrSpooled reports that the database could not be written; the records wait in
	// state/spool until the daemon loads them.
	ErrSpooled = errors.New("recorded in state/spool only")
	// ErrUnrecorded reports that neither could be written; the records are lost.
	ErrUnrecorded = errors.New("not recorded")
)

const (
	// patience is how long one Record waits for the database.
	patience = 2 * time.Second
	// journalBusyMS is shorter than patience, so that SQLite reports what it waited for.
	journalBusyMS = 1500
	// retryAfter is how long a Journal does not try a slow database again, so that a verb
	// with fifty records does not wait fifty times.
	retryAfter = 10 * time.Second
)

// A Journal is how verbs record what they do: in the database, else in the spool. It opens
// the database at the first record and keeps it open; a verb that records nothing opens
// nothing.
type Journal struct {
	home home.Dir

	turn chan struct{} // holds one token: its owner uses the fields below
	db   *DB
	why  error     // the last failure
	till time.Time // the database is not tried before this time

	running sync.WaitGroup
}

// NewJournal returns a Journal and touches no file. The caller should call Close unless
// the process ends anyway.
func NewJournal(home home.Dir) *Journal {
	j := &Journal{home: home, turn: make(chan struct{}, 1)}
	j.turn <- struct{}{}
	return j
}

// Record records what happened. It returns nil if that is in the database, an error that
// matches ErrSpooled and gives the reason if it is only in the spool, and one that matches
// ErrUnrecorded if it is nowhere. A verb continues in each case. Record waits at most two
// seconds for the database, even if ctx has no deadline.
func (j *Journal) Record(ctx context.Context, ops ...Op) error {
	ops = stampAll(ops, time.Now())
	why := j.try(ctx, ops)
	if why == nil {
		return nil
	}
	if err := spool(j.home, ops); err != nil {
		return fmt.Errorf("%w: %w; the database: %w", ErrUnrecorded, err, why)
	}
	return fmt.Errorf("%w: %w", ErrSpooled, why)
}

// try writes to the database within the journal's patience. SQLite cannot be interrupted
// while it waits for a lock, so the attempt runs in a goroutine, which Close waits for. An
// attempt that succeeds after it was given up is harmless: replaying the same ops changes
// nothing.
func (j *Journal) try(ctx context.Context, ops []Op) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	select {
	case <-j.turn:
	case <-ctx.Done():
		cancel()
		return fmt.Errorf("another record is still waiting for the database: %w", ctx.Err())
	}
	if time.Now().Before(j.till) {
		err := j.why
		j.turn <- struct{}{}
		cancel()
		return err
	}
	result := make(chan error, 1)
	j.running.Go(func() {
		defer cancel()
		err := j.write(ctx, ops)
		j.turn <- struct{}{}
		result <- err
	})
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		select {
		case err := <-result:
			return err
		default:
			return fmt.Errorf("%s: no answer: %w", j.home.Path(home.DBFile), ctx.Err())
		}
	}
}

// write writes the ops; its caller has the turn.
func (j *Journal) write(ctx context.Context, ops []Op) (err error) {
	began := time.Now()
	defer func() {
		if err == nil {
			return
		}
		if j.db != nil { // its file may be gone
			j.db.Close()
			j.db = nil
		}
		if time.Since(began) > patience/4 {
			j.why, j.till = err, time.Now().Add(retryAfter)
		}
	}()
	if j.db == nil {
		db, err := open(ctx, j.home, journalBusyMS)
		if err != nil {
			return err
		}
		j.db = db
	}
	return j.db.Apply(ctx, ops...)
}

// Close closes the database if it was opened, after a write in progress.
func (j *Journal) Close() error {
	j.running.Wait()
	<-j.turn
	defer func() { j.turn <- struct{}{} }()
	if j.db == nil {
		return nil
	}
	err := j.db.Close()
	j.db = nil
	return err
}
