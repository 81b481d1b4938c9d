package proc_test

import (
	"testing"
	"time"

	"netsky/internal/proc"
	"netsky/internal/testworld"
)

// A clock that was set is one whose wall time and monotonic time disagree; only a process
// that lives through it can see that, so here a reading is moved.
func TestSetBack(t *testing.T) {
	from := time.Now()
	later := from.Add(time.Minute) // moves both
	for _, tc := range []struct {
		name     string
		from, to time.Time
		want     bool
	}{
		{"not set", from, later, false},
		{"read at once", from, from, false},
		{"without monotonic readings", from.Round(0), from.Round(0).Add(-time.Hour), false},
	} {
		testworld.Equal(t, proc.SetBack(tc.from, tc.to), tc.want, "%s: SetBack", tc.name)
	}
}
