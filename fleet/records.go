package fleet

import (
	"context"
	"fmt"

	"netsky/bus"
	"netsky/daemon"
	"netsky/daemon/observe"
	"netsky/home"
	"netsky/store"
)

// Records opens the database for reading. One that was lost is built anew, which is said. mail opens
// the bus for that.
func Records(ctx context.Context, h home.Dir, mail func() (*bus.Bus, error), u UI) (*store.DB, error) {
	db, rebuilt, err := observe.Records(ctx, h, mail)
	if rebuilt {
		u.Warn(fmt.Errorf("%s was missing; rebuilt it from the agents' files and mailboxes; older log entries and sessions are lost", h.Path(home.DBFile)))
	}
	return db, err
}

// FreshRecords opens the database once it holds what the mailboxes do.
func FreshRecords(ctx context.Context, h home.Dir, mail func() (*bus.Bus, error), u UI) (*store.DB, error) {
	db, err := Records(ctx, h, mail, u)
	if err != nil {
		return nil, err
	}
	if err := daemon.Sync(ctx, h, mail); err != nil {
		u.Warn(fmt.Errorf("the newest messages may be missing from the records: %w", err))
	}
	return db, nil
}
