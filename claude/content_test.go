package claude_test

import (
	"testing"

	"netsky/claude"
	"netsky/internal/testworld"
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
		testworld.Equal(t, claude.Text([]byte(in)), want, "Text(%s)", in)
	}
}
