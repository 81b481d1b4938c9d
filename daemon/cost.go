package daemon

import (
	"context"
	"time"

	"netsky/cost"
	"netsky/spawn/meter"
)

// costs are what turns cost as the dashboard shows it.
type costs struct{ d *daemon }

func (c costs) Account(ctx context.Context, by cost.By, f cost.Filter) (meter.Account, error) {
	db := c.d.database()
	if db == nil {
		return meter.Account{}, errNoRecords
	}
	return meter.Read(ctx, db, by, f, time.Now())
}
