package view_test

import (
	"strings"
	"testing"

	"netsky/cli/view"
	"netsky/internal/testworld"
)

func TestCut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text  string
		width int
		want  string
	}{
		{"abc", 0, "abc"}, {"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"abc", 1, "…"},
		{"日本語", 6, "日本語"}, {"日本語", 5, "日本…"}, {"日本語", 4, "日…"}, {"日", 1, "…"},
		{"e\u0301e\u0301", 2, "e\u0301e\u0301"}, {"e\u0301ab", 2, "e\u0301…"}, {"🚀🚀", 3, "🚀…"},
	} {
		got := view.Cut(tt.text, tt.width)
		if got != tt.want || tt.width > 0 && view.Columns(got) > tt.width {
			t.Errorf("Cut(%q, %d) = %q, want %q", tt.text, tt.width, got, tt.want)
		}
	}
	testworld.Equal(t, view.Columns(strings.Repeat("x", 200)), 200, "not 200 columns")
}
