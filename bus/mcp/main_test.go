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
	if socket := os.Getenv("MCP_MAILMAN"); socket != "" {
		os.Exit(mailmanProcess(socket))
	}
	os.Exit(m.Run())
}
