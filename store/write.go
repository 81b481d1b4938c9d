package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"
)

// maxGroup limits how many callers' ops share one commit, so that the first of them does
// not wait for the last of a flood.
const maxGroup = 128

var (
	errClosed   = errors.New("closed")
	errReadOnly = errors.New("opened for reading only")
)

// A request is one caller's ops on their way through the writer.
type request struct {
	ops  []Op
	err  error
	done chan struct{} // closed when err is final
}

// Apply records what happened, all of it or, with an error, nothing. When it returns nil
// the ops survive a crash of the process. If ctx ends first they may or may not be
// recorded; applying them again is safe either way. An op without a time gets the current
// one.
func (db *DB) Apply(ctx context.Context, ops ...Op) error {
	if len(ops) == 0 && db.reqs != nil {
		return nil
	}
	return db.apply(ctx, ops)
}

func (db *DB) apply(ctx context.Context, ops []Op) error {
	if db.reqs == nil {
		return fileError(db.home, errReadOnly)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	r := &request{ops: stampAll(ops, db.Now()), done: make(chan struct{})}
	select {
	case db.reqs <- r:
	case <-db.quit:
		return fileError(db.home, errClosed)
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	case <-db.done:
		select {
		case <-r.done: // it was in the last group
			return r.err
		default:
			return fileError(db.home, errClosed)
		}
	}
}

// run is the writer: it takes waiting requests, up to maxGroup, and commits them together.
// It alone uses the connection.
func (db *DB) run(w *writer) {
	defer close(db.done)
	defer func() { w.close() }()
	for {
		var group []*request
		select {
		case <-db.quit:
			return
		case r := <-db.reqs:
			group = append(group, r)
		}
	more:
		for len(group) < maxGroup {
			select {
			case r := <-db.reqs:
				group = append(group, r)
			default:
				break more
			}
		}
		var err error
		if !w.current() {
			err = db.reopen(w)
		}
		if err == nil {
			err = w.tx.commit(group)
		}
		for _, r := range group {
			if r.err == nil {
				r.err = err
			}
			if r.err != nil {
				r.err = fileError(db.home, r.err)
			}
			close(r.done)
		}
	}
}

// reopen switches to the file that has the database's name now.
func (db *DB) reopen(w *writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), busyMS*time.Millisecond)
	defer cancel()
	next, err := openWriter(ctx, db.home, w.busyMS, true)
	if err != nil {
		return err
	}
	// It may be a restored copy that does not know the present agents.
	if err := next.tx.rebuild(append(rebuilt(db.home), scheduled(db.home)...)); err != nil {
		next.close()
		return err
	}
	read, err := openReaders(db.home)
	if err != nil {
		next.close()
		return err
	}
	w.close()
	*w = *next
	old := db.read.Swap(read)
	db.fresh.Add(1)
	return old.Close() // readers still in progress finish
}

// A tx is the writer's connection inside one transaction. Its statements run without a
// context: a commit for many must not end with one caller's patience. The driver keeps
// them prepared.
type tx struct{ conn *sql.Conn }

func (t *tx) exec(query string, args ...any) error {
	_, err := t.conn.ExecContext(context.Background(), query, args...)
	return err
}

// one scans one row; a missing one is sql.ErrNoRows.
func (t *tx) one(query string, args []any, to ...any) error {
	return t.conn.QueryRowContext(context.Background(), query, args...).Scan(to...)
}

// commit runs the group in one transaction. A request that fails is undone alone and gets
// its own error; the returned error is for all the others.
func (t *tx) commit(group []*request) (err error) {
	if !slices.ContainsFunc(group, func(r *request) bool { return len(r.ops) > 0 }) {
		return nil
	}
	if err := t.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	// A full disk may have ended the transaction already; then this says so
	// to nobody.
	rollback := func(err error) error {
		t.exec("ROLLBACK")
		return err
	}
	for _, r := range group {
		if len(group) == 1 {
			if err := t.apply(r.ops); err != nil {
				return rollback(err)
			}
			break
		}
		if err := t.exec("SAVEPOINT one"); err != nil {
			return rollback(err)
		}
		if r.err = t.apply(r.ops); r.err != nil {
			if err := t.exec("ROLLBACK TO one"); err != nil {
				return rollback(err)
			}
		}
		if err := t.exec("RELEASE one"); err != nil {
			return rollback(err)
		}
	}
	if err := t.exec("COMMIT"); err != nil {
		return rollback(err)
	}
	return nil
}

func (t *tx) apply(ops []Op) error {
	for _, op := range ops {
		if err := op.apply(t); err != nil {
			return fmt.Errorf("record %s: %w", op.name(), err)
		}
	}
	return nil
}

// Refresh switches to the file that has the database's name now, if the open one was
// removed or replaced; Replaced counts that. Otherwise it is free.
func (db *DB) Refresh(ctx context.Context) error {
	return db.apply(ctx, nil)
}
