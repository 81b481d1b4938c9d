package daemon

import (
	"context"
	"time"

	"netsky/cost"
)

// costs are what turns cost as the dashboard shows it.
type costs struct{ d *daemon }

func (c costs) Account(ctx context.Context, by cost.By, f cost.Filter) (cost.Account, error) {
	db := c.d.database()
	if db == nil {
		return cost.Account{}, errNoRecords
	}
	return cost.Read(ctx, db, by, f, time.Now())
}
