package tmux_test

import (
	"os"
	"os/exec"
	"testing"

	"netsky/internal/testworld"
)

// mustHelper starts this test program as a process that opens a hub and waits
// to be killed.
func mustHelper(tb testing.TB, socket string) *exec.Cmd {
	tb.Helper()
	self := testworld.Got(os.Executable())(tb)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "HUB_OWNER="+socket)
	cmd.Stderr = os.Stderr
	testworld.Must(tb, cmd.Start())
	tb.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}
