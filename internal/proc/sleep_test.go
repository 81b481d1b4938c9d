package proc_test

import (
	"testing"
	"testing/synctest"
	"time"

	"netsky/internal/proc"
	"netsky/internal/testworld"
)

// Loops that began at different times sleep until the same time.
func TestTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, begun := range []time.Duration{0, 1, time.Second / 3, time.Second, 5*time.Second/2 - 1} {
			time.Sleep(begun)
			before := time.Now()
			testworld.Must(t, proc.Sleep(t.Context(), proc.Tick(time.Second)))
			if now := time.Now(); now.Nanosecond() != 0 || now.Sub(before) > time.Second || now.Equal(before) {
				t.Errorf("from %v it sleeps until %v", before, now)
			}
		}
	})
}
