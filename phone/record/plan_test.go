package record_test

import (
	"strings"
	"testing"
)

// The brake's questions are answered by an index of their own, however much has arrived.
func TestBrakeIndexed(t *testing.T) {
	r := mustRecords(t)
	for _, query := range []string{
		"SELECT * FROM phone_heard WHERE line = ? AND chat = ? AND verdict = ? ORDER BY seq DESC LIMIT 1",
		"SELECT * FROM phone_heard WHERE line = ? AND chat = ? AND verdict = ? AND at > ? AND at < ? LIMIT ?",
	} {
		args := []any{"test", "-;x", "order", 1, 2, 3}[:strings.Count(query, "?")]
		var id, parent, unused int
		var detail string
		if err := r.DB.Pool().QueryRow("EXPLAIN QUERY PLAN "+query, args...).Scan(&id, &parent, &unused, &detail); err != nil || !strings.Contains(detail, "phone_heard_verdict") {
			t.Errorf("%s: %s, %v", query, detail, err)
		}
	}
}
