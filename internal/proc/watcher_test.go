package proc_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsky/internal/proc"
	"netsky/internal/testworld"
)

func mustWatcher(tb testing.TB) *proc.Watcher {
	tb.Helper()
	w := testworld.Got(proc.NewWatcher())(tb)
	tb.Cleanup(func() { w.Close() })
	return w
}

func mustAdd(tb testing.TB, w *proc.Watcher, key string, p proc.Process) {
	tb.Helper()
	testworld.Must(tb, w.Add(key, p))
}

func next(tb testing.TB, w *proc.Watcher) proc.Death {
	tb.Helper()
	select {
	case d, ok := <-w.Deaths():
		if !ok {
			tb.Fatal("closed")
		}
		return d
	case <-time.After(30 * time.Second):
		tb.Fatal("no death told")
	}
	return proc.Death{}
}

// quiet checks that nothing is told until a death that is added last: deaths
// known before it come first.
func quiet(tb testing.TB, w *proc.Watcher) {
	tb.Helper()
	mustAdd(tb, w, "last", proc.Process{PID: 1 << 29, Start: 1})
	if d := next(tb, w); d.Key != "last" {
		tb.Errorf("told %+v, want nothing", d)
	}
}

// sleepers starts n processes that are children of another.
func sleepers(tb testing.TB, n int) []proc.Process {
	tb.Helper()
	cmd := exec.Command("/bin/sh", "-c", fmt.Sprintf("i=0; while [ $i -lt %d ]; do sleep 1000 & echo $!; i=$((i+1)); done; wait", n))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	testworld.Must(tb, err)
	list := make([]proc.Process, n)
	tb.Cleanup(func() {
		proc.End(context.Background(), list, 0)
		cmd.Wait()
	})
	for i := range list {
		var pid int
		testworld.Got(fmt.Fscan(out, &pid))(tb)
		if list[i], err = proc.Find(pid); err != nil {
			tb.Fatal(err)
		}
	}
	return list
}

func TestWatcher(t *testing.T) {
	for _, burst := range []int{1, 20, 200} {
		t.Run(strconv.Itoa(burst), func(t *testing.T) {
			w := mustWatcher(t)
			list := sleepers(t, 201)
			for i, p := range list {
				mustAdd(t, w, fmt.Sprint(i), p)
			}
			told := make(map[string]int)
			for i := 0; i < 200; i += burst {
				for _, p := range list[i : i+burst] {
					testworld.Must(t, unix.Kill(p.PID, unix.SIGKILL))
				}
				for range burst {
					d := next(t, w)
					n, err := strconv.Atoi(d.Key)
					if err != nil || n < i || n >= i+burst || d.Process != list[n] {
						t.Errorf("told %+v after killing %d to %d", d, i, i+burst-1)
					}
					told[d.Key]++
				}
			}
			quiet(t, w)
			for key, n := range told {
				if n != 1 {
					t.Errorf("%s told %d times", key, n)
				}
			}
			t.Logf("%d at a time: 200 killed, %d told once", burst, len(told))
			testworld.Equal(t, list[200].Alive(), true, "a process that was only watched is dead")
		})
	}
}

func TestWatcherAdd(t *testing.T) {
	w := mustWatcher(t)
	list := sleepers(t, 3)
	unix.Kill(list[0].PID, unix.SIGKILL)
	gone(t, "process", list[0])

	mustAdd(t, w, "dead", list[0])
	if d := next(t, w); d.Key != "dead" || d.Process != list[0] {
		t.Errorf("told %+v, want the dead one", d)
	}
	other := list[1]
	other.Start--
	mustAdd(t, w, "number of another", other)
	if d := next(t, w); d.Process != other {
		t.Errorf("told %+v, want %+v", d, other)
	}
	mustAdd(t, w, "birth unknown", proc.Process{PID: list[1].PID})
	if d := next(t, w); d.Key != "birth unknown" {
		t.Errorf("told %+v, want the one that is nobody", d)
	}
	mustAdd(t, w, "one process", list[1])
	mustAdd(t, w, "same process", list[1])
	mustAdd(t, w, "removed", list[1])
	w.Remove("removed")
	w.Remove("never added")
	mustAdd(t, w, "replaced", list[1])
	mustAdd(t, w, "replaced", list[2])
	quiet(t, w)
	unix.Kill(list[1].PID, unix.SIGKILL)
	keys := map[string]bool{next(t, w).Key: true, next(t, w).Key: true}
	if !keys["one process"] || !keys["same process"] {
		t.Errorf("told %v", keys)
	}
	quiet(t, w)
	unix.Kill(list[2].PID, unix.SIGKILL)
	if d := next(t, w); d.Key != "replaced" || d.Process != list[2] {
		t.Errorf("told %+v, want replaced", d)
	}
	for _, pid := range []int{0, -1} {
		testworld.Fails(t, w.Add("no process", proc.Process{PID: pid}), "", "Add of %d: no error", pid)
	}
}

// TestWatcherClose: Close waits, nobody has to take what is untold, and no
// descriptor is left.
func TestWatcherClose(t *testing.T) {
	list := sleepers(t, 5)
	before := descriptors(t)
	for range 100 {
		w := testworld.Got(proc.NewWatcher())(t)
		for i, p := range list {
			mustAdd(t, w, fmt.Sprint(i), p)
		}
		mustAdd(t, w, "dead 1", proc.Process{PID: 1 << 29, Start: 1})
		mustAdd(t, w, "dead 2", proc.Process{PID: 1 << 29, Start: 1})
		testworld.Must(t, w.Close())
		for range w.Deaths() {
			t.Error("told after Close")
		}
		testworld.ErrorIs(t, w.Add("late", list[0]), proc.ErrClosed, "Add after Close")
		testworld.Equal(t, w.Close(), nil, "second Close")
	}
	if after := descriptors(t); after > before+10 {
		t.Errorf("%d descriptors open, %d before", after, before)
	}
}

func descriptors(tb testing.TB) int {
	tb.Helper()
	list := testworld.Got(os.ReadDir("/dev/fd"))(tb)
	return len(list)
}
