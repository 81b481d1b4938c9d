package schedule_test

import (
	"strings"
	"testing"
	"time"

	"netsky/daemon/schedule"
	"netsky/internal/testworld"
)

func in(t testing.TB, zone string) *time.Location {
	t.Helper()
	return testworld.Got(time.LoadLocation(zone))(t)
}

func TestNext(t *testing.T) {
	t.Parallel()
	const form = "2006-01-02 15:04 MST"
	for _, c := range []struct{ spec, zone, from, want string }{
		{"*/15 9-17 * * 1-5", "UTC", "2026-11-20 17:45", "2026-11-23 09:00 UTC"}, // Friday to Monday
		{"*/15 9-17 * * 1-5", "UTC", "2026-11-23 09:00", "2026-11-23 09:15 UTC"},
		{"0 9 * * mon,Wed", "UTC", "2026-11-23 09:00", "2026-11-25 09:00 UTC"},
		{"30 6 1 jan *", "UTC", "2026-11-23 00:00", "2027-01-01 06:30 UTC"},
		{"0 0 29 2 *", "UTC", "2096-03-01 00:00", "2104-02-29 00:00 UTC"},
		{"0 0 13 * 5", "UTC", "2026-11-01 00:00", "2026-11-06 00:00 UTC"}, // either day
		{"5,35 */6 * * *", "UTC", "2026-11-23 06:06", "2026-11-23 06:35 UTC"},
		{"10-20/5 * * * 7", "UTC", "2026-11-23 00:00", "2026-11-29 00:10 UTC"},
		{"40/10 * * * *", "UTC", "2026-11-23 00:50", "2026-11-23 01:40 UTC"},
		{"@hourly", "UTC", "2026-11-23 09:00", "2026-11-23 10:00 UTC"},
		{"@Daily", "UTC", "2026-12-31 09:00", "2027-01-01 00:00 UTC"},
		{"@weekly", "UTC", "2026-11-23 09:00", "2026-11-29 00:00 UTC"},
		{"@monthly", "UTC", "2026-11-23 09:00", "2026-12-01 00:00 UTC"},
		{"every 90m", "UTC", "2026-11-23 09:00", "2026-11-23 10:30 UTC"},

		// In spring the clock skips 02:00 to 03:00; what was meant there is due at 03:00.
		{"30 2 * * *", "Europe/Berlin", "2026-03-28 12:00", "2026-03-29 03:00 CEST"},
		{"30 2 * * *", "Europe/Berlin", "2026-03-29 03:00", "2026-03-30 02:30 CEST"},
		{"15 2-4 * * *", "Europe/Berlin", "2026-03-29 03:00", "2026-03-29 03:15 CEST"},
		{"*/30 * * * *", "Europe/Berlin", "2026-03-29 01:30", "2026-03-29 03:00 CEST"},
		{"45 * * * *", "Europe/Berlin", "2026-03-29 01:45", "2026-03-29 03:45 CEST"},
		// In autumn it shows 02:00 to 03:00 twice.
		{"30 2 * * *", "Europe/Berlin", "2026-10-24 12:00", "2026-10-25 02:30 CEST"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25 02:30", "2026-10-26 02:30 CET"},
		// Half an hour, at Lord Howe.
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03 12:00", "2026-10-04 02:30 +11"},
		// A midnight that does not exist.
		{"0 0 * * *", "America/Santiago", "2026-09-05 12:00", "2026-09-06 01:00 -03"},
		{"@monthly", "America/Asuncion", "2023-09-30 12:00", "2023-10-01 01:00 -03"},
		{"0 0,4 * * 0", "America/Santiago", "2026-09-05 23:50", "2026-09-06 01:00 -03"},
		{"31 * * * 0", "America/Santiago", "2026-09-05 23:54", "2026-09-06 01:31 -03"},
		// Go's own bounds of a zone err on the last day of a leap year.
		{"38 2 5 10 */6", "America/Santiago", "2036-10-05 02:38", "2041-10-05 02:38 -03"},
	} {
		w, err := schedule.Parse(c.spec)
		if err != nil {
			t.Errorf("%s: %v", c.spec, err)
			continue
		}
		loc := in(t, c.zone)
		from := testworld.Got(time.ParseInLocation("2006-01-02 15:04", c.from, loc))(t)
		testworld.Equal(t, w.Next(from).Format(form), c.want, "%s after %s in %s", c.spec, c.from, c.zone)
	}
}

// Where every hour is meant, each quarter of the hour that comes twice is due.
func TestNextInTheSecondHour(t *testing.T) {
	t.Parallel()
	loc := in(t, "Europe/Berlin")
	for spec, want := range map[string]int{"*/15 * * * *": 25 * 4, "0 2,3 * * *": 2, "*/15 2 * * *": 4, "59 23 * * *": 1} {
		w := testworld.Got(schedule.Parse(spec))(t)
		n := 0
		end := time.Date(2026, 10, 26, 0, 0, 0, 0, loc)
		for at := w.Next(time.Date(2026, 10, 24, 23, 59, 59, 0, loc)); at.Before(end); at = w.Next(at) {
			n++
		}
		testworld.Equal(t, n, want, "%s: times on the day that has 25 hours", spec)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{
		"", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "*/0 * * * *", "5-1 * * * *",
		"a * * * *", "1, * * * *", "-1 * * * *", "+1 * * * *", "1-2-3 * * * *", "* * * foo *", "0 0 31 2 *", "0 0 30 feb *", "@never",
		"every", "every 30s", "every 59.9s", "every -5m", "every x", "every 9000h", strings.Repeat("1,", 1000), "*/99999999999999999999 * * * *",
	} {
		if w, err := schedule.Parse(spec); err == nil {
			t.Errorf("%q: %+v", spec, w)
		}
	}
}

// Whatever parses is due later than asked, at a minute that it names, and soon found.
func FuzzParse(f *testing.F) {
	for _, spec := range []string{"*/15 9-17 * * 1-5", "@daily", "every 30m", "0 0 29 2 *", "1-59/7 */3 1,15 jan-dec sun", "30 2 * * *"} {
		f.Add(spec, int64(1_795_397_000))
	}
	loc := in(f, "Europe/Berlin")
	f.Fuzz(func(t *testing.T, spec string, unix int64) {
		w, err := schedule.Parse(spec)
		if err != nil {
			return
		}
		from := time.Unix(unix%4_000_000_000, 0).In(loc)
		for range 5 {
			next := w.Next(from)
			if next.IsZero() || !next.After(from) || next.Sub(from) > 9*366*24*time.Hour {
				t.Fatalf("%q after %v: %v", spec, from, next)
			}
			from = next
		}
	})
}
