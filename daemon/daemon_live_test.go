//go:build live

package daemon_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsky/daemon"
	"netsky/home"
	"netsky/internal/testworld"
)

// One that hangs is known for it, ended, and replaced.
func TestHung(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"start", "stop"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			first := w.start()
			w.suspend(first.PID)
			began := time.Now()
			testworld.ErrorIs(t, testworld.Err(daemon.Ping(w.ctx, w.home)), daemon.ErrHung, "ping")
			if took := time.Since(began); took < daemon.HungAfter || took > 10*daemon.HungAfter {
				t.Errorf("took %v to be known as hung", took)
			}
			if how == "stop" {
				testworld.Equal(t, testworld.Err(daemon.Stop(w.ctx, w.home)), nil)
			} else if second := w.start(); second.PID == first.PID {
				t.Error("not replaced")
			}
			if first.Alive() {
				t.Error("the hung daemon lives")
			}
		})
	}
}

// suspend stops all threads of a process.
func (w *world) suspend(pid int) {
	w.Helper()
	syscall.Kill(pid, syscall.SIGSTOP)
	testworld.WaitOr(w, func() bool {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		for _, path := range tasks {
			stat, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(stat), ") T ") {
				return false
			}
		}
		return err == nil && len(tasks) > 0
	}, func() string { return "does not stop" })
}

// A home that is removed under the daemon ends it: it makes no home anew and
// does not go round in circles.
func TestHomeRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start()
	testworld.WaitOr(w, func() bool { return os.RemoveAll(w.home.Root()) == nil }, func() string { return "the home can't be removed" })
	testworld.WaitOr(w, func() bool { return !p.Alive() }, func() string { return "the daemon lives on" })
	if _, err := os.Stat(w.home.Root()); !errors.Is(err, fs.ErrNotExist) {
		list, _ := os.ReadDir(w.home.Root())
		t.Errorf("the home is there again: %v %v", err, list)
	}
}

// One whose home is another's by now leaves that one's door alone.
func TestHomeReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.start()
	testworld.WaitOr(w, func() bool { return os.RemoveAll(w.home.Root()) == nil }, func() string { return "the home can't be removed" })
	testworld.Got(w.home.Make())(t)
	second := w.start()
	testworld.WaitOr(w, func() bool { return !first.Alive() }, func() string { return "the first daemon lives on" })
	if p, err := daemon.Ping(w.ctx, w.home); err != nil || p.PID != second.PID {
		t.Errorf("the second: %+v %v", p, err)
	}
	if data, err := os.ReadFile(w.home.Path(home.DaemonPID)); err != nil || processOf(second.PID).Start != second.Start || len(data) == 0 {
		t.Errorf("pid file %q %v", data, err)
	}
}
