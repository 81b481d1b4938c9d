package cli

import (
	"context"

	"netsky/fleet"
	"netsky/home"
	"netsky/store"
)

// records opens the database for reading, as [fleet.Records] does.
func (a *app) records(ctx context.Context, h home.Dir) (*store.DB, error) {
	return fleet.Records(ctx, h, a.bus, ui{a: a})
}

// freshRecords opens the database once it holds what the mailboxes do.
func (a *app) freshRecords(ctx context.Context, h home.Dir) (*store.DB, error) {
	return fleet.FreshRecords(ctx, h, a.bus, ui{a: a})
}
