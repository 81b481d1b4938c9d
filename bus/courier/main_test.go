package courier_test

import (
	"os"
	"testing"
)

// TestMain is the tests, or one of the processes that they start.
func TestMain(m *testing.M) {
	if socket := os.Getenv("COURIER_DOOR"); socket != "" {
		os.Exit(courierProcess(socket))
	}
	if home := os.Getenv(stepHome); home != "" {
		os.Exit(stepProcess(home))
	}
	os.Exit(m.Run())
}
