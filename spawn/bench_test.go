package spawn_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/testworld"
	"netsky/spawn"
	"netsky/tmux"
)

// BenchmarkUp compares up, from nothing to the last agent ready, with one
// batched call of tmux that starts the same processes until each has written its
// state file. Both are taken in turn.
func BenchmarkUp(b *testing.B) {
	for _, n := range []int{10, 50} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := newWorld(b)
			names := clones(n)
			w.upOnce(names) // the database and the files are there in both
			w.endServer()
			var up, bare []time.Duration
			for b.Loop() {
				bare = append(bare, w.bareUp(names))
				w.endServer()
				up = append(up, w.upOnce(names))
				w.endServer()
			}
			b.ReportMetric(median(up).Seconds()*1000, "ms")
			b.ReportMetric(median(bare).Seconds()*1000, "bare-ms")
			b.ReportMetric(float64(median(up))/float64(median(bare)), "ratio")
		})
	}
}

// BenchmarkDown ends ten idle agents, each of which acks.
func BenchmarkDown(b *testing.B) { benchmarkDown(b, 10) }

// BenchmarkDownMany ends fifty.
func BenchmarkDownMany(b *testing.B) { benchmarkDown(b, 50) }

func benchmarkDown(b *testing.B, n int) {
	w := newWorld(b)
	names := clones(n)
	var took []time.Duration
	for b.Loop() {
		w.upOnce(names)
		began := time.Now()
		w.down(spawn.DownOptions{})
		took = append(took, time.Since(began))
	}
	b.ReportMetric(median(took).Seconds(), "s")
}

func clones(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("agent%d", i+1))
	}
	return names
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

func (w *world) upOnce(names []string) time.Duration {
	w.Helper()
	began := time.Now()
	w.upReady(demo{}, names...)
	return time.Since(began)
}

// endServer ends the agents at once, and the tmux server with them.
func (w *world) endServer() {
	w.Helper()
	testworld.Must(w, w.l.Tmux.Stop(w.ctx))
	testworld.WaitOr(w, func() bool {
		list, err := proc.Descendants(0, "NETSKY_HOME="+w.home.Root())
		return err == nil && len(list) == 0
	}, func() string { return "the agents live on" })
}

// bareUp starts what the last up has started, as it stands in the launch files.
func (w *world) bareUp(names []string) time.Duration {
	w.Helper()
	var batch bytes.Buffer
	for _, n := range names {
		testworld.Must(w, w.home.ClearReports(agent.ID(n)))
		fmt.Fprintf(&batch, "new-session -d -s %s -x 200 -y 50 -c %s -e NETSKY_HOME=%s %s\n",
			n, w.work(), w.home.Root(), tmux.Quote("exec "+netsky+" run "+n))
	}
	cmd := w.tmuxCommand("start-server", ";", "source-file", "-")
	cmd.Stdin = &batch
	dir := w.home.Path(home.ReportDir)
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("%v: %s", err, out)
	}
	testworld.WaitOr(w, func() bool {
		list, err := os.ReadDir(dir)
		there := 0
		for _, e := range list {
			if !strings.HasPrefix(e.Name(), ".") {
				there++
			}
		}
		return err == nil && there == len(names)
	}, func() string { return "not all are up" })
	return time.Since(began)
}
