package proc

import (
	"context"
	"time"
)

// Sleep waits for d, or until ctx ends: then it returns ctx's error.
func Sleep(ctx context.Context, d time.Duration) error { return SleepUntil(ctx, d, nil) }

// Tick returns how long it is until the next whole multiple of d by the clock. What sleeps for that each
// time does its work with all others that do, and the process wakes once for them.
func Tick(d time.Duration) time.Duration {
	now := time.Now()
	return now.Truncate(d).Add(d).Sub(now)
}

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
