//go:build live

package check_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"netsky/internal/testworld"
)

// A command does not outlive the netsky that runs it.
func TestKilled(t *testing.T) {
	t.Parallel()
	h, dir := testworld.FastHome(t), t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "COMMAND_TEST_DIR="+dir, "COMMAND_TEST_HOME="+h.Root())
	testworld.Must(t, cmd.Start())
	pid := func(name string) string {
		data, _ := os.ReadFile(filepath.Join(dir, name))
		return strings.TrimSpace(string(data))
	}
	testworld.Wait(t, "the command to begin", func() bool { return pid("self") != "" && pid("child") != "" })
	testworld.Must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	for _, name := range []string{"self", "child"} {
		testworld.Wait(t, name+" to end", func() bool {
			out, err := exec.Command("ps", "-o", "stat=", "-p", pid(name)).Output()
			return err != nil || strings.HasPrefix(string(out), "Z")
		})
	}
}
