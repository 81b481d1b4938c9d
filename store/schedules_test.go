package store_test

import (
	"testing"

	"netsky/internal/testworld"
	"netsky/store"
)

// Replayed in any order, ops of a schedule have the effect of once.
func TestScheduleOps(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), testworld.FastHome(t))
	testworld.Must(t, err)
	defer db.Close()
	add := store.AddSchedule{ID: "c1", Spec: "@daily", Target: "agent1", Text: "look", Who: "owner", Created: 1, First: 2, Times: 9, Until: 99}
	run := func(at store.Time, message string, result store.RunResult) store.RunSchedule {
		return store.RunSchedule{ID: "c1", Message: message, Wall: at + 3, Run: store.Run{Due: at, At: at, Result: result}}
	}
	ops := []store.Op{add, run(10, "m1", store.RunSending), run(11, "", store.RunSent), run(20, "m2", store.RunSending), run(21, "", store.RunSkipped), run(10, "m1", store.RunSending)}
	for range 2 {
		testworld.Must(t, db.Apply(t.Context(), ops...))
		list, err := db.Schedules(t.Context(), false)
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		s := list[0]
		if s.Message != "m2" || s.Sent != 2 || s.Last.Due != 21 || s.Last.Wall != 24 || s.Last.Result != store.RunSkipped || s.Times != 9 || s.Until != 99 || s.First != 2 {
			t.Errorf("%+v", s)
		}
		ops = []store.Op{add, run(20, "m2", store.RunSending), run(21, "", store.RunSkipped), run(10, "m1", store.RunSending)}
	}
	testworld.Must(t, db.Apply(t.Context(), store.EndSchedule{ID: "c1", Why: "removed"}, store.EndSchedule{ID: "c1", Why: "again"}))
	open, err := db.Schedules(t.Context(), false)
	all, err2 := db.Schedules(t.Context(), true)
	if err != nil || err2 != nil || len(open) != 0 || len(all) != 1 || all[0].Why != "removed" || all[0].Ended == 0 {
		t.Errorf("%+v, %+v, %v, %v", open, all, err, err2)
	}
}
