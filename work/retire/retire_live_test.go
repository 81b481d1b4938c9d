//go:build live

package retire_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"netsky/internal/testworld"
)

// Killed before or after any git, it leaves all or goes on with the next call.
func TestRetireKilled(t *testing.T) {
	t.Parallel()
	real := testworld.Got(exec.LookPath("git"))(t)
	for _, when := range []string{"before", "after"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			bin := t.TempDir()
			// The n-th git kills its caller.
			script := "#!/bin/sh\nn=$(($(cat $COUNT) + 1)); echo $n > $COUNT\n" +
				"if [ $n = $AT ]; then [ $WHEN = after ] && " + real + " \"$@\" >/dev/null; kill -9 $PPID; exit 1; fi\nexec " + real + " \"$@\"\n"
			testworld.Must(t, os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755))
			for at, killed := 1, true; killed; at++ {
				f := newField(t)
				commit := f.tree.Commit("work", "w", "w")
				f.Git("merge", "-q", "netsky/agent1")
				count := filepath.Join(t.TempDir(), "count")
				testworld.Must(t, os.WriteFile(count, []byte("0\n"), 0o600))
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), "RETIRE_HOME="+f.home.Root(), "COUNT="+count, fmt.Sprint("AT=", at), "WHEN="+when, "PATH="+bin+":"+os.Getenv("PATH"))
				out, err := cmd.CombinedOutput()
				var ee *exec.ExitError
				killed = errors.As(err, &ee) && ee.Sys().(syscall.WaitStatus).Signaled()
				if err != nil && !killed {
					t.Fatalf("at %d: %v: %s", at, err, out)
				}
				if !killed {
					f.gone(commit)
					t.Logf("%d gits", at-1)
					break
				}
				if f.Git("cat-file", "-t", commit) != "commit" {
					t.Fatalf("at %d: the commit is gone", at)
				}
				testworld.Must(t, testworld.Err(f.retire()), "at %d", at)
				f.gone(commit)
			}
		})
	}
}
