package spell

import (
	"testing"

	"netsky/internal/testworld"
)

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"up", "up", 0}, {"", "up", 2}, {"dwon", "down", 1}, {"statsu", "status", 1}, {"stats", "status", 1}, {"peel", "peek", 1}, {"abc", "xyz", 3},
	} {
		testworld.Equal(t, distance(tt.a, tt.b), tt.want, "distance(%q, %q)", tt.a, tt.b)
		testworld.Equal(t, distance(tt.b, tt.a), tt.want, "distance(%q, %q)", tt.b, tt.a)
	}
}
