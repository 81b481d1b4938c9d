package record_test

import (
	"fmt"
	"testing"
	"time"

	"netsky/internal/testworld"
	"netsky/phone/record"
	"netsky/store"
)

// Texts of one batch are recorded at one time, and read in the order in which they were written;
// of more than the limit the last ones.
func TestTalkOrder(t *testing.T) {
	r := mustRecords(t)
	now := store.At(time.Now())
	var heard []record.Heard
	for i := range 5 {
		heard = append(heard, record.Heard{Line: "test", GUID: fmt.Sprint("g", i), At: now, Time: now, Kind: "text", Text: fmt.Sprint(i), Verdict: "order", State: record.Done})
	}
	answer := record.Said{Line: "test", ID: "a", Part: 1, Parts: 1, Text: "[netsky] ok", State: record.Pending, Created: now}
	testworld.Got(r.Hear(t.Context(), "test", "1", heard, nil, []record.Said{answer}))(t)
	for limit, want := range map[int][]string{9: {"0", "1", "2", "3", "4", "[netsky] ok"}, 3: {"3", "4", "[netsky] ok"}} {
		list := testworld.Got(r.Talk(t.Context(), limit))(t)
		var got []string
		for _, turn := range list {
			got = append(got, turn.Text)
		}
		testworld.EqualList(t, got, want, "the last %d", limit)
	}
}
