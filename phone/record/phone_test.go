package record_test

import (
	"testing"
	"time"

	"netsky/internal/testworld"
	"netsky/phone/record"
	"netsky/store"
)

func mustRecords(t *testing.T) record.Records {
	t.Helper()
	t.Parallel()
	db := testworld.Got(store.Open(t.Context(), testworld.FastHome(t)))(t)
	t.Cleanup(func() { db.Close() })
	r := record.Records{DB: db}
	testworld.Got(r.Open(t.Context(), "test", "", 0, time.Now()))(t)
	return r
}

// What has taken effect is not tried again, by whoever still has it on a list.
func TestTry(t *testing.T) {
	r := mustRecords(t)
	now := store.At(time.Now())
	fresh, err := r.Hear(t.Context(), "test", "1", []record.Heard{{Line: "test", GUID: "g", At: now, Time: now, Kind: "text", Verdict: "order", State: record.New}}, nil, nil)
	if err != nil || len(fresh) != 1 {
		t.Fatalf("heard %v, %v", fresh, err)
	}
	for want := range 2 {
		if tries, ok, err := r.Try(t.Context(), fresh[0]); tries != want || !ok || err != nil {
			t.Fatalf("Try = %d, %v, %v, want %d before it", tries, ok, err, want)
		}
	}
	testworld.Must(t, r.Did(t.Context(), fresh[0]))
	if _, ok, err := r.Try(t.Context(), fresh[0]); ok || err != nil {
		t.Errorf("Try of what is done = %v, %v", ok, err)
	}
}

// What became of a part is not written to another one that has its number in other records.
func TestOtherRecords(t *testing.T) {
	r := mustRecords(t)
	now := time.Now()
	testworld.Must(t, r.Say(t.Context(), record.Said{Line: "test", ID: "here", Part: 1, Parts: 1, Created: store.At(now)}))
	here, ok, err := r.Part(t.Context(), "test", "here")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	lost := record.Said{Seq: here.Seq, Line: "test", ID: "lost", Part: 1, State: record.Sent}
	testworld.Must(t, r.Begin(t.Context(), lost, "", now))
	testworld.Must(t, r.End(t.Context(), lost, now))
	if got, _, err := r.Part(t.Context(), "test", "here"); err != nil || got.State != record.Pending {
		t.Errorf("state %q, %v", got.State, err)
	}
}
