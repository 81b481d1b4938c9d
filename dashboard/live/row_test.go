package live_test

import (
	"encoding/json"
	"testing"

	"netsky/dashboard/live"
	"netsky/internal/testworld"
)

// A row is sent as encoding/json has it, whatever stands in it.
func TestRowJSON(t *testing.T) {
	texts := []string{
		"", "words", "\"quoted\" and \\", "a<b && c>d", "\t\x00\x1b\x7f", "漢字 ─│ ✻ é", "\u2028\u2029", "\xff\xc3", "half \xe2\x80", "\U0001f600",
	}
	rows := []live.Row{{}}
	for _, s := range texts {
		rows = append(rows, live.Row{{Text: s}},
			live.Row{{Text: s, Class: "b f1"}, {Text: "x", FG: "#102030", Link: s}, {Class: s, BG: s, FG: s}})
	}
	for _, r := range rows {
		want := testworld.Got(json.Marshal(r))(t)
		if got := string(r.JSON()); got != string(want) {
			t.Errorf("%+v is sent as\n%s, want\n%s", r, got, want)
		}
	}
}
