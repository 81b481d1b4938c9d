package cli

import (
	"context"

	"netsky/daemon"
	"netsky/daemon/observe"
	"netsky/fleet"
	"netsky/home"
	"netsky/store"
)

// records opens the database for reading, and says so if it was lost and rebuilt. The
// error matches fs.ErrNotExist in a home in which no agent was ever started.
func (a *app) records(ctx context.Context, h home.Dir) (*store.DB, error) {
	db, rebuilt, err := observe.Records(ctx, h, a.bus)
	if rebuilt {
		a.warn(fleet.Rebuilt, tilde(a, h.Path(home.DBFile)))
	}
	return db, err
}

// freshRecords opens the database once it holds what the mailboxes do.
func (a *app) freshRecords(ctx context.Context, h home.Dir) (*store.DB, error) {
	db, err := a.records(ctx, h)
	if err != nil {
		return nil, err
	}
	if err := daemon.Sync(ctx, h, a.bus); err != nil {
		a.warn("the newest messages may be missing from the records: %v", err)
	}
	return db, nil
}
