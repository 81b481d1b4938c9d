package tty_test

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"netsky/internal/testworld"
	"netsky/internal/tty"
)

func mustStart(t *testing.T, script string) *tty.Child {
	t.Helper()
	return testworld.Got(tty.Start(nil, "/bin/sh", []string{"sh", "-c", script}, nil, "/"))(t)
}

// A program that stops is continued, and its end is reported once.
func TestWait(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for script, want := range map[string]int{"exit 3": 3, "kill -STOP $$; exit 4": 4, "kill -TSTP 0; exit 5": 5} {
		c := mustStart(t, script)
		if end := c.Wait(); !end.Exited() || end.ExitStatus() != want {
			t.Errorf("%s: Wait() = %#x, want exit %d", script, end, want)
		}
		if _, ended := c.Reap(false); ended || c.PID() != 0 {
			t.Errorf("%s: reported twice, or process %d", script, c.PID())
		}
	}
}

// A signal goes to the program's group, and after its end to nobody: its number may
// be another's.
func TestSignal(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c := mustStart(t, "sleep 1000 & wait")
	group := c.PID()
	c.Signal(unix.SIGKILL)
	if end := c.Wait(); !end.Signaled() || end.Signal() != unix.SIGKILL {
		t.Errorf("Wait() = %#x, want killed", end)
	}
	for unix.Kill(-group, 0) == nil { // the sleep is another's child by now
		runtime.Gosched()
	}
	c.Signal(unix.SIGKILL)
	new(tty.Child).Signal(unix.SIGKILL) // 0 would be the test's own group
}
