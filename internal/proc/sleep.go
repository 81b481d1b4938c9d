package proc

import (
	"context"
	"time"
)

// Sleep waits for d, or until ctx ends: then it returns ctx's error.
func Sleep(ctx context.Context, d time.Duration) error { return SleepUntil(ctx, d, nil) }

// SleepUntil is Sleep that something from the channel ends.
func SleepUntil(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
	return ctx.Err()
}
