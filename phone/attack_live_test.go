//go:build live

package phone_test

import (
	"context"
	"testing"
	"time"

	"netsky/internal/testworld"
	"netsky/phone"
	"netsky/phone/chat"
)

// A transport that never answers is reported.
func TestNextHangs(t *testing.T) {
	var c clock
	alerts := make(chan string, 10)
	s := &strangeWire{next: func(ctx context.Context, _ string) (chat.Batch, error) { <-ctx.Done(); return chat.Batch{}, ctx.Err() }}
	w := newWorld(t, func(o *phone.Options) {
		c.of(o)
		strange(s)(o)
		o.Alert = func(_ context.Context, _, body string) { alerts <- body }
	})
	testworld.Wait(t, "it runs", func() bool { return w.home.Mark(phone.StatusFile).Exists() })
	c.set(6 * time.Minute)
	testworld.Wait(t, "it is told", func() bool {
		s, err := phone.Load(w.home)
		return err == nil && s.State == phone.StateDegraded && len(alerts) == 1
	})
}
