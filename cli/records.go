package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"netsky/agent/home"
	"netsky/daemon/observe"
	"netsky/store"
)

// records opens the database for reading. If it was lost, it is made anew from
// the agents' files and the mailboxes, and that is said. The error matches
// fs.ErrNotExist in a home in which no agent was ever started.
func (a *app) records(ctx context.Context, h home.Dir) (*store.DB, error) {
	db, err := store.OpenRead(ctx, h)
	if !errors.Is(err, fs.ErrNotExist) || !store.Launched(h) {
		return db, err
	}
	if db, err = a.rebuiltRecords(ctx, h); err != nil {
		return nil, fmt.Errorf("the records are missing and could not be rebuilt: %w", err)
	}
	a.warn("%s was missing; rebuilt it from the agents' files and mailboxes; older log entries and sessions are lost",
		tilde(a, h.Path(home.DBFile)))
	return db, nil
}

func (a *app) rebuiltRecords(ctx context.Context, h home.Dir) (*store.DB, error) {
	b, err := a.bus()
	if err != nil {
		return nil, err
	}
	db, err := store.Open(ctx, h)
	if err != nil {
		return nil, err
	}
	if err := (&observe.Observer{Bus: b, DB: db}).Sync(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}
