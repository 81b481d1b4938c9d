package claude_test

import (
	"testing"

	"netsky/claude"
)

func TestText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`"hello"`: "hello",
		`[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":""},{"type":"text","text":"b"}]`: "a\nb",
		`[{"type":"tool_result","content":"x"}]`: "",
		`{"text":"x"}`:                           "",
		``:                                       "",
	} {
		if got := claude.Text([]byte(in)); got != want {
			t.Errorf("Text(%s) = %q, want %q", in, got, want)
		}
	}
}
