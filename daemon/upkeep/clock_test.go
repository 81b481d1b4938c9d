package upkeep_test

import (
	"os"
	"testing"
	"time"

	"netsky/daemon/upkeep"
	"netsky/internal/testworld"
)

// A clock that is far ahead for a while, once or twice, is believed a day further at each
// pass; one that is right again is believed at once.
func TestCareful(t *testing.T) {
	t.Parallel()
	r := newRig(t, upkeep.Bounds{Mail: day, Records: day})
	start := r.now.Truncate(time.Millisecond)
	const years = 9 * 365 * day
	for i, tt := range []struct{ clock, believed time.Duration }{
		{0, 0},
		{time.Hour, time.Hour},
		{20 * time.Hour, 20 * time.Hour}, // off for a night
		{years, 44 * time.Hour},          // a wrong year
		{years + time.Hour, 68 * time.Hour},
		{2 * years, 92 * time.Hour},
		{21 * time.Hour, 21 * time.Hour}, // corrected
		{5 * day, 45 * time.Hour},        // off for days
		{5*day + time.Hour, 69 * time.Hour},
		{5*day + 2*time.Hour, 93 * time.Hour},
		{5*day + 3*time.Hour, 117 * time.Hour},
		{5*day + 4*time.Hour, 5*day + 4*time.Hour},
	} {
		r.now = start.Add(tt.clock)
		k := testworld.Got(r.keeper.Careful())(r)
		testworld.Equal(t, k.Now().Sub(start), tt.believed, "%d: believed", i)
	}
	testworld.Must(r, os.WriteFile(r.home.Path("state/upkeep.json"), []byte("{"), 0o600))
	if k, err := r.keeper.Careful(); err != nil || !k.Now().Equal(r.now) {
		t.Errorf("with a damaged file: %v %v", k.Now(), err)
	}
	testworld.Must(r, os.Remove(r.home.Path("state/upkeep.json")))
	testworld.Must(r, os.Mkdir(r.home.Path("state/upkeep.json"), 0o700))
	if k, err := r.keeper.Careful(); err == nil || !k.Now().Equal(r.now) {
		t.Errorf("with a file that can't be written: %v %v", k.Now(), err)
	}
}
