package tmux_test

import (
	"os"
	"os/exec"
	"testing"
)

// mustHelper starts this test program as a process that opens a hub and waits
// to be killed.
func mustHelper(tb testing.TB, socket string) *exec.Cmd {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "HUB_OWNER="+socket)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}
