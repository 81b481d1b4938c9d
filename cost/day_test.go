package cost_test

import (
	"os"
	"os/exec"
	"testing"
	"time"
	_ "time/tzdata" // the zones are there on every machine

	"netsky/cost"
)

// The days of a year follow each other without a gap, also where clocks change at midnight.
func TestDays(t *testing.T) {
	const within = "NETSKY_TEST_DAYS"
	if os.Getenv(within) == "" {
		t.Parallel()
		for _, zone := range []string{"UTC", "America/Havana", "Africa/Cairo", "America/Santiago", "Asia/Kathmandu"} {
			cmd := exec.Command(os.Args[0], "-test.run=^TestDays$")
			cmd.Env = append(os.Environ(), "TZ="+zone, within+"=1")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", zone, err, out)
			}
		}
		return
	}
	for n := range 366 {
		noon := time.Date(2026, 1, 1+n, 12, 0, 0, 0, time.Local)
		b := cost.Budget{Scope: cost.ScopeDay, Period: cost.Period(noon)}
		first, end := cost.Midnight(noon, 0), b.Ends()
		if cost.Period(first) != b.Period || cost.Period(first.Add(-1)) == b.Period || cost.Period(end) == b.Period || cost.Period(end.Add(-1)) != b.Period {
			t.Errorf("%s is from %v to %v", b.Period, first, end)
		}
		if day, err := cost.ParseDay(b.Period); err != nil || !day.Equal(first) || !cost.Midnight(end, -1).Equal(first) {
			t.Errorf("%s begins at %v, %v, want %v", b.Period, day, err, first)
		}
	}
}
