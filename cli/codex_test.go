package cli_test

import (
	"testing"

	"netsky/internal/testworld"
)

func mustContain(t testing.TB, what, text string, want ...string) {
	t.Helper()
	for _, s := range want {
		testworld.Contains(t, text, s, "%s lacks", what)
	}
}
