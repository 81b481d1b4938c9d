package cli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"netsky/internal/testworld"
)

// BenchmarkOn times `netsky --on HOST status` against `ssh HOST true`, both on a kept connection, the two in
// turn: to this machine, and to one that is 20 ms away.
func BenchmarkOn(b *testing.B) {
	for name, away := range map[string]time.Duration{"here": 0, "away": 20 * time.Millisecond} {
		b.Run(name, func(b *testing.B) {
			here, there := mustWorld(b), mustWorld(b)
			s := testworld.StartSSHD(b, append(there.env, "PATH="+os.Getenv("PATH"))...)
			s.Delay = away / 2
			here.env = append(here.env, "PATH="+s.Bin+":"+os.Getenv("PATH"))
			run := func(name string, args ...string) func() {
				return func() { testworld.Must(b, here.command(b.Context(), name, args...).Run(), name) }
			}
			kept := "ControlPath=" + here.dir + "/kept"
			run(s.Bin+"/ssh", "-f", "-N", "-o", "ControlMaster=yes", "-o", "ControlPersist=10m", "-o", kept, "build1")()
			here.must(b, "netsky", "init")
			there.mustDaemon(b)
			here.must(b, "netsky", "--on", "build1", "status") // the daemon there answers the next
			compare(b, run("netsky", "--on", "build1", "status"), run(s.Bin+"/ssh", "-o", kept, "build1", "true"))
		})
	}
}

// mustDaemon runs a daemon in the world, and returns its process.
func (w *world) mustDaemon(tb testing.TB) int {
	tb.Helper()
	w.must(tb, "netsky", "init")
	cmd := w.command(context.Background(), "netsky", "daemon", "run")
	testworld.Must(tb, cmd.Start())
	tb.Cleanup(func() {
		w.command(context.Background(), "netsky", "daemon", "stop").Run() // gone already if the test has ended it
		cmd.Wait()
	})
	testworld.Wait(tb, "the daemon runs", func() bool { return w.command(tb.Context(), "netsky", "daemon", "status").Run() == nil })
	return cmd.Process.Pid
}

// BenchmarkIdleLink tells what an idle team of two hosts costs, in shares of one core over a minute: the server,
// and on each host the daemon beyond one of a home without a team.
func BenchmarkIdleLink(b *testing.B) {
	here, there, alone := mustWorld(b), mustWorld(b), mustWorld(b)
	s := testworld.StartSSHD(b, append(there.env, "PATH="+os.Getenv("PATH"))...)
	here.env = append(here.env, "PATH="+s.Bin+":"+os.Getenv("PATH"))
	var list []int
	for _, w := range []*world{here, there, alone} {
		list = append(list, w.mustDaemon(b))
	}
	here.must(b, "netsky", "link", "serve", "--name", "laptop")
	here.must(b, "netsky", "link", "invite", "build1", "--yes")
	var server struct {
		PID int `json:"pid"`
	}
	testworld.Must(b, json.Unmarshal(testworld.Got(os.ReadFile(filepath.Join(here.home, "run/link-server.json")))(b), &server))
	list = append(list, server.PID)
	<-time.After(30 * time.Second) // what the start has caused is over
	const span = time.Minute
	for b.Loop() {
		var used [4]time.Duration
		for i, pid := range list {
			used[i] = -mustCPU(b, pid)
		}
		<-time.After(span)
		for i, pid := range list {
			used[i] += mustCPU(b, pid)
		}
		share := func(d time.Duration) float64 { return float64(d) / float64(span) * 100 }
		b.ReportMetric(share(used[0]-used[2]), "owner-%")
		b.ReportMetric(share(used[1]-used[2]), "worker-%")
		b.ReportMetric(share(used[3]), "server-%")
	}
}

// mustCPU is the time that the threads of a process have used.
func mustCPU(b *testing.B, pid int) (sum time.Duration) {
	b.Helper()
	for _, file := range testworld.Got(filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid)))(b) {
		data, _ := os.ReadFile(file) // of a thread that has ended meanwhile
		ran, _, _ := strings.Cut(string(data), " ")
		ns, _ := strconv.ParseInt(ran, 10, 64)
		sum += time.Duration(ns)
	}
	return sum
}
