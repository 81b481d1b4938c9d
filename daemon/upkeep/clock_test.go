package upkeep_test

import (
	"os"
	"testing"
	"time"

	"netsky/daemon/upkeep"
)

// A clock that has gone far ahead is not believed for a day, unless it is set back before;
// a machine that is off for days at a time is kept in order nevertheless.
func TestWait(t *testing.T) {
	t.Parallel()
	r := newRig(t, upkeep.Bounds{Mail: day, Records: day})
	start := r.now
	for i, tt := range []struct {
		after time.Duration // the start
		waits bool
	}{
		{0, false},
		{time.Hour, false},
		{40 * time.Hour, false},           // off for a night and a day
		{9 * 365 * day, true},             // a wrong year
		{9*365*day + time.Hour, true},     // still
		{41 * time.Hour, false},           // corrected
		{9 * 365 * day, true},             // wrong again
		{9*365*day + 23*time.Hour, true},  // for nearly a day
		{9*365*day + 25*time.Hour, false}, // for a day: so it is right
		{9*365*day + 30*day, true},        // off for a month
		{9*365*day + 40*day, false},       // and again
		{9*365*day + 40*day + time.Hour, false},
	} {
		r.now = start.Add(tt.after)
		why, err := r.keeper.Wait()
		r.must(err)
		if (why != "") != tt.waits {
			t.Errorf("%d: waits %q, want %v", i, why, tt.waits)
		}
	}
	r.must(os.WriteFile(r.home.Path("state/upkeep.json"), []byte("{"), 0o600))
	if why, err := r.keeper.Wait(); why != "" || err != nil {
		t.Errorf("with a damaged file: %q %v", why, err)
	}
}
