package cli

import (
	"context"

	"netsky/agent/home"
	"netsky/daemon/observe"
	"netsky/store"
)

// records opens the database for reading. That it was lost and made anew is said. The
// error matches fs.ErrNotExist in a home in which no agent was ever started.
func (a *app) records(ctx context.Context, h home.Dir) (*store.DB, error) {
	db, rebuilt, err := observe.Records(ctx, h, a.bus)
	if rebuilt {
		a.warn("%s was missing; rebuilt it from the agents' files and mailboxes; older log entries and sessions are lost",
			tilde(a, h.Path(home.DBFile)))
	}
	return db, err
}

// freshRecords opens the records. Where no daemon mirrors the mailboxes into them,
// that is done first.
func (a *app) freshRecords(ctx context.Context, h home.Dir) (*store.DB, error) {
	db, err := a.records(ctx, h)
	if err != nil {
		return nil, err
	}
	if err := observe.Refresh(ctx, h, a.bus); err != nil {
		a.warn("no daemon runs, and what came since it did is not in the records: %v", err)
	}
	return db, nil
}
