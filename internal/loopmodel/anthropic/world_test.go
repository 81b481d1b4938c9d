package anthropic_test

import (
	"os"
	"testing"

	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/testworld"
)

func TestMain(m *testing.M) {
	if os.Getenv("LOOPMODEL_MCP") != "" {
		serveReplies(os.Stdin, os.Stdout)
		return
	}
	os.Exit(m.Run())
}

func mustModel(tb testing.TB) *anthropic.Server {
	tb.Helper()
	model := testworld.Got(anthropic.Start())(tb)
	tb.Cleanup(func() { model.Close() })
	return model
}
