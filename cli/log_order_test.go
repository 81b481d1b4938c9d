package cli

import (
	"testing"

	"netsky/store"
)

// A death that was noticed late stands where it happened.
func TestLogsByTime(t *testing.T) {
	list := []store.Log{{ID: 1, Time: 30}, {ID: 2, Time: 10}, {ID: 3, Time: 30}, {ID: 4, Time: 20}}
	byTime(list)
	var ids []int64
	for _, l := range list {
		ids = append(ids, l.ID)
	}
	if ids[0] != 2 || ids[1] != 4 || ids[2] != 1 || ids[3] != 3 {
		t.Errorf("order %v", ids)
	}
}
