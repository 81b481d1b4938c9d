package courier

import (
	"context"
	"time"
)

// Waiting returns the waiting messages, rendered, if no other way is open: as many at a
// time as a tool's result can hold. It returns how many messages are left.
func (m *Courier) Waiting(ctx context.Context) (texts string, left int, err error) {
	deadline := time.NewTimer(2 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	done, more := make(chan struct{}), false
	ask := func() {
		texts, left, more = m.offers.hand(ctx, m.over)
		done <- struct{}{}
	}
	for asks := m.asks; ; {
		select {
		case asks <- ask:
			if <-done; texts != "" || !more {
				return texts, left, nil
			}
			asks = nil // until the next tick
		case <-tick.C:
			asks = m.asks
		case <-ctx.Done():
			return "", 0, ctx.Err()
		case <-deadline.C:
			return "", left, nil
		}
	}
}
