//go:build live

package appserver_test

import (
	"os"
	"testing"

	"netsky/codex/appserver"
	"netsky/internal/testworld"
)

// mustCodex is the real Codex that the tests use.
func mustCodex(tb testing.TB, variable string) string {
	tb.Helper()
	program := os.Getenv(variable)
	if program == "" {
		tb.Fatalf("%s is not set: run scripts/test, which installs the Codex that these tests use and says where it is", variable)
	}
	return program
}

func TestProbe(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string]string{"NETSKY_TEST_CODEX": "0.169.0", "NETSKY_TEST_CODEX_OLD": "0.153.4"} {
		v, err := appserver.Probe(t.Context(), mustCodex(t, variable), os.Environ())
		if err != nil || v.String() != want {
			t.Errorf("Probe(%s) = %v, %v, want %s", variable, v, err, want)
		}
	}
	testworld.Fails(t, testworld.Err(appserver.Probe(t.Context(), "/nowhere/codex", nil)), "", "Probe of nothing is no error")
}
