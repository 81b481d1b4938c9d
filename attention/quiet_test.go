package attention_test

import (
	"os"
	"testing"
	"time"

	"netsky/attention"
	"netsky/internal/testworld"
)

func TestQuiet(t *testing.T) {
	h := testworld.Home(t)
	now := time.UnixMilli(1_800_000_000_000)
	add := func(d time.Duration, at time.Time) time.Duration {
		t.Helper()
		q := testworld.Got(attention.Silence(t.Context(), h, d, "owner", at))(t)
		return q.Until().Sub(now)
	}
	testworld.Equal(t, add(time.Hour, now), time.Hour, "quiet for")
	testworld.Equal(t, add(time.Minute, now), time.Hour, "a shorter one ends it after")
	if got := attention.QuietNow(h, now.Add(time.Hour)); got.UntilMS != 0 {
		t.Errorf("does not expire: %+v", got)
	}
	if got := attention.QuietNow(h, now.Add(-30*24*time.Hour)); got.UntilMS != 0 {
		t.Errorf("a clock that was set back makes it last: %+v", got)
	}
	add(time.Minute, now.Add(2*time.Hour))
	if data, err := os.ReadFile(h.Path("state/watchdog/quiet.json")); err != nil || len(data) > 100 {
		t.Errorf("expired ones stay: %s %v", data, err)
	}
	if was, err := attention.EndQuiet(t.Context(), h, now.Add(2*time.Hour)); err != nil || !was {
		t.Errorf("%v %v", was, err)
	}
	if _, err := os.Stat(h.Path("state/watchdog/quiet.json")); !os.IsNotExist(err) {
		t.Errorf("the file stays: %v", err)
	}
	testworld.Must(t, h.WriteFile("state/watchdog/quiet.json", []byte("{"), false))
	if got := attention.QuietNow(h, now); got.UntilMS != 0 {
		t.Errorf("%+v", got)
	}
	testworld.Equal(t, add(time.Hour, now), time.Hour, "a damaged file prevents it")
}
