package cli_test

import (
	"strings"
	"testing"
)

func mustContain(t testing.TB, what, text string, want ...string) {
	t.Helper()
	for _, s := range want {
		if !strings.Contains(text, s) {
			t.Errorf("%s lacks %q:\n%s", what, s, text)
		}
	}
}
