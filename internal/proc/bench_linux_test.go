package proc_test

import (
	"os/exec"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsky/internal/proc"
	"netsky/internal/testworld"
)

// BenchmarkDeath is the time from a kill until the death is noticed, by a
// Watcher and by a bare poll of a pidfd, in turns. It reports the median of
// each and their ratio.
func BenchmarkDeath(b *testing.B) {
	w := mustWatcher(b)
	var ours, bare []time.Duration
	for b.Loop() {
		ours = append(ours, noticed(b, func(p proc.Process) func() {
			mustAdd(b, w, "one", p)
			return func() { <-w.Deaths() }
		}))
		bare = append(bare, noticed(b, func(p proc.Process) func() {
			fd := testworld.Got(unix.PidfdOpen(p.PID, 0))(b)
			return func() {
				defer unix.Close(fd)
				poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
				for {
					if n, _ := unix.Poll(poll, -1); n == 1 {
						return
					}
				}
			}
		}))
	}
	slices.Sort(ours)
	slices.Sort(bare)
	a, f := ours[len(ours)/2], bare[len(bare)/2]
	b.ReportMetric(float64(a)/1e3, "µs-watcher")
	b.ReportMetric(float64(f)/1e3, "µs-poll")
	b.ReportMetric(float64(a)/float64(f), "ratio")
}

// noticed kills a process that somebody waits for and times the wait.
func noticed(b *testing.B, watch func(proc.Process) (wait func())) time.Duration {
	cmd := exec.Command("/bin/sleep", "1000")
	testworld.Must(b, cmd.Start())
	defer cmd.Wait()
	p := testworld.Got(proc.Find(cmd.Process.Pid))(b)
	wait := watch(p)
	began := make(chan time.Time, 1)
	// The killer starts once the waiter below is asleep, or nearly.
	go func() {
		<-time.After(2 * time.Millisecond)
		began <- time.Now()
		cmd.Process.Kill()
	}()
	wait()
	return time.Since(<-began)
}
