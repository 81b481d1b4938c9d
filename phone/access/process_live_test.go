//go:build live

package access_test

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"netsky/home"
	"netsky/internal/testworld"
	"netsky/phone/access"
)

func start(t *testing.T, h home.Dir, prefix, forever string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "ACCESS_TEST_HOME="+h.Root(), "ACCESS_TEST_PREFIX="+prefix, "ACCESS_TEST_FOREVER="+forever)
	cmd.Stderr = os.Stderr
	return cmd
}

// Processes that change the file at the same time lose nothing of each other's.
func TestRace(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	var wg sync.WaitGroup
	for _, prefix := range []string{"111", "222", "333"} {
		cmd := start(t, h, prefix, "")
		wg.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	l := mustLoad(t, h)
	for _, prefix := range []string{"111", "222", "333"} {
		for n := range 40 {
			if handle := fmt.Sprintf("+%s%04d", prefix, n); l.May(handle) == (n%3 == 0) {
				t.Errorf("%s: %v", handle, l.May(handle))
			}
		}
	}
	testworld.Equal(t, len(l.Entries()), 120, "entries")
}

// A process that is killed at any moment leaves a file that is whole, and no lock.
func TestKilled(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	for i := range 25 {
		cmd := start(t, h, "999", "yes")
		testworld.Start(t, cmd)
		mark := h.Mark(file)
		testworld.Wait(t, "a change", func() bool { return !mark.Same(h.Mark(file)) })
		cmd.Process.Kill()
		cmd.Wait()
		before := len(mustLoad(t, h).Entries())
		handle := fmt.Sprintf("+4930%04d", i)
		if _, changed, err := access.Allow(t.Context(), h, handle, noon); err != nil || !changed {
			t.Fatalf("after a kill: %v, %v", changed, err)
		}
		if n := len(mustLoad(t, h).Entries()); n != before+1 {
			t.Errorf("%d entries, were %d", n, before)
		}
	}
}
