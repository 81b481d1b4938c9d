package doctor_test

import (
	"strings"
	"testing"
	"time"

	"netsky/cli/doctor"
	"netsky/daemon/upkeep"
	"netsky/internal/testworld"
	"netsky/store"
)

// A home that is larger than normal says so; --fix removes what is old, and only that.
func TestGrowth(t *testing.T) {
	t.Parallel()
	h, o := patient(t)
	o.Upkeep = upkeep.Keeper{Home: h, Bounds: upkeep.Bounds{Mail: time.Hour, Records: 24 * time.Hour, Bytes: 1}}
	db, err := store.Open(t.Context(), h)
	testworld.Must(t, err)
	defer db.Close()
	text, old := strings.Repeat("x", 100<<10), store.At(time.Now().Add(-48*time.Hour))
	for range 200 {
		testworld.Must(t, db.Apply(t.Context(), store.AddLog{Text: text, Time: old}))
	}
	testworld.Must(t, db.Apply(t.Context(), store.AddLog{Key: "young", Text: "young"}))
	if got := strings.Join(lines(doctor.Run(t.Context(), *o), "growth", doctor.Warn), "\n"); !strings.Contains(got, "records ") || !strings.Contains(got, "--fix") {
		t.Fatalf("%q", got)
	}
	r := doctor.Fix(t.Context(), *o)
	testworld.Contains(t, strings.Join(r.Fixed, "\n"), "growth: removed what is old: mail 0, records 200", "fixed %q, failed %q", r.Fixed, r.Failed)
	if l, err := db.Logs(t.Context(), store.LogFilter{Text: "young"}); err != nil || len(l.Items) != 1 {
		t.Errorf("%v, %v", l, err)
	}
	if again := doctor.Fix(t.Context(), *o); len(again.Fixed) > 0 || len(again.Failed) > 0 {
		t.Errorf("a second pass did %q, failed at %q", again.Fixed, again.Failed)
	}
}
