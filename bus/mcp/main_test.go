package mcp_test

import (
	"os"
	"testing"
)

// TestMain is the tests, or one of the processes that they start.
func TestMain(m *testing.M) {
	if home := os.Getenv("MCP_SERVER_HOME"); home != "" {
		os.Exit(serverProcess(home))
	}
	os.Exit(m.Run())
}
