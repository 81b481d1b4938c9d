package daemon_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"netsky/agent"
	"netsky/daemon"
	"netsky/internal/proc"
	"netsky/internal/testworld"
	"netsky/spawn"
)

// BenchmarkIdle tells what netsky's daemon costs that looks after 50 agents which do
// nothing: its memory, and its share of one core over ten seconds. Quiet ones
// are programs that know nothing of netsky.
func BenchmarkIdle(b *testing.B) {
	program := filepath.Join(b.TempDir(), "netsky")
	testworld.Must(b, testworld.Build("-ldflags", "-s -w", "-o", program))
	for name, r := range map[string]spawn.Runtime{"demo": demo{}, "quiet": quiet{"exec cat"}} {
		b.Run(name, func(b *testing.B) { idles(b, program, r) })
	}
}

func idles(b *testing.B, program string, r spawn.Runtime) {
	w := newWorld(b)
	started, _, err := daemon.Start(w.ctx, w.home, []string{program, "daemon", "run"}, w.env)
	testworld.Must(b, err)
	p := processOf(started.PID)
	var ids []agent.ID
	for i := range 50 {
		ids = append(ids, agent.Clone(i+1))
	}
	w.up(r, ids...)
	<-time.After(15 * time.Second) // what the start has caused is over
	const span = 10 * time.Second
	for b.Loop() {
		before := w.cpu(p)
		<-time.After(span)
		used := w.cpu(p) - before
		b.ReportMetric(float64(used)/float64(span)*100, "cpu-%")
		b.ReportMetric(w.memory(p, "VmRSS"), "rss-MB")
		b.ReportMetric(w.memory(p, "RssAnon"), "own-MB") // the rest is pages of its program's file and of libraries
	}
}

// cpu is the time that a process and its children have used.
func (w *world) cpu(p proc.Process) time.Duration {
	w.Helper()
	stat := testworld.Got(os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID)))(w)
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')'):])
	const ticks = 100 // a second; what the kernel tells programs, whatever it counts in
	sum := 0
	for _, i := range []int{12, 13, 14, 15} { // utime, stime and those of children that have ended
		n := testworld.Got(strconv.Atoi(string(f[i])))(w)
		sum += n
	}
	return time.Duration(sum) * time.Second / ticks
}

// memory is a figure of the kernel's about a process, in MB.
func (w *world) memory(p proc.Process, figure string) float64 {
	w.Helper()
	status := testworld.Got(os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID)))(w)
	_, rest, _ := bytes.Cut(status, []byte(figure+":"))
	var kb float64
	testworld.Got(fmt.Sscan(string(rest), &kb))(w)
	return kb / 1024
}
