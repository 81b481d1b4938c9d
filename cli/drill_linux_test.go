//go:build live

package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"netsky/internal/proc"
	"netsky/internal/testworld"
)

// A drill that is interrupted, or killed, whichever of its processes that hits, leaves
// nothing: no process, stopped or not, and no directory.
func TestDrillEnded(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		signal unix.Signal
		inside bool // the process that does the work, else the one that was started
	}{
		{"Ctrl-C", unix.SIGINT, false},
		{"killed", unix.SIGKILL, false},
		{"killed inside", unix.SIGKILL, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := mustWorld(t)
			dir := w.mustTempDir(t, "drill")
			cmd := w.command(t.Context(), "netsky", "drill", "--yes", "--agents", "1", "--only", "suspend,stop", "--for", "1h")
			cmd.Env = append(cmd.Env, "TMPDIR="+dir)
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &said, &said
			testworld.Must(t, cmd.Start())
			first := cmd.Process.Pid
			var list []proc.Process
			running := func() bool {
				var err error
				list, err = proc.Descendants(0, "TMPDIR="+dir)
				return err == nil
			}
			words := func() string {
				left, _ := os.ReadDir(dir)
				return fmt.Sprintf("running: %v, left: %v\n%s", list, left, said.String())
			}
			// While something is stopped.
			testworld.WaitOr(t, func() bool {
				if !running() {
					return false
				}
				return slices.ContainsFunc(list, isStopped)
			}, words)
			victim, err := proc.Find(first)
			if tc.inside {
				for _, p := range list {
					if strings.Contains(p.Command(), "drill --inside") {
						victim = p
					}
				}
			}
			if err != nil || victim.Signal(tc.signal) != nil {
				t.Fatal(err)
			}
			testworld.WaitOr(t, func() bool {
				left, err := os.ReadDir(dir)
				return running() && len(list) == 0 && err == nil && len(left) == 0
			}, words)
			_ = cmd.Wait()
			if status := cmd.ProcessState.ExitCode(); tc.signal == unix.SIGINT && status != 130 {
				t.Errorf("exit status %d, want 130\n%s", status, said.String())
			}
		})
	}
}

// isStopped reports whether a process is stopped.
func isStopped(p proc.Process) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
	_, after, ok := strings.Cut(string(stat), ") ")
	return err == nil && ok && strings.HasPrefix(after, "T")
}
