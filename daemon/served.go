package daemon

import (
	"context"
	"errors"
	"time"

	"netsky/internal/proc"
)

// servedWithin is how long a daemon that has just started may take to serve the
// dashboard.
const servedWithin = 5 * time.Second

// Served calls ask, which needs the dashboard, again until the daemon serves it.
func Served(ctx context.Context, ask func() error) error {
	for end := time.Now().Add(servedWithin); ; {
		err := ask()
		var not *NotServed
		if !errors.As(err, &not) || not.Web.Taken || time.Now().After(end) {
			return err
		}
		if err := proc.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}
