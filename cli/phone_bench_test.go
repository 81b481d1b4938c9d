package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
)

// BenchmarkPhoneArrival measures from a text's commit in the Mac's database to its envelope in
// agent0's inbox, through the daemon.
func BenchmarkPhoneArrival(b *testing.B) {
	w := mustPhone(b, "")
	w.must(b, "netsky", "up", "0", "--type", "demo", "--no-attach")
	w.must(b, "netsky", "down", "agent0", "--force") // so that what arrives stays in its inbox
	w.says("first")
	arrives := func(n int) {
		for !w.inInbox(n) {
			time.Sleep(time.Millisecond)
		}
	}
	arrives(1)
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		// At any moment between two looks, and slowly enough for the brake.
		time.Sleep(3500*time.Millisecond + time.Duration(i%20)*47*time.Millisecond)
		w.says(fmt.Sprint("text ", i))
		began := time.Now()
		arrives(i + 2)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "p50-ms")
	b.ReportMetric(float64(took[len(took)*95/100].Milliseconds()), "p95-ms")
}

func (w *phoneWorld) inInbox(n int) bool {
	files, err := filepath.Glob(filepath.Join(w.world.home, home.Mailbox(agent.Root), "inbox", "*.json"))
	return err == nil && len(files) >= n
}

// BenchmarkPhoneIdle measures the processor time of the daemon while nothing happens, with two
// idle agents and a phone.
func BenchmarkPhoneIdle(b *testing.B) {
	for _, on := range []bool{true, false} {
		b.Run(map[bool]string{true: "phone", false: "none"}[on], func(b *testing.B) {
			w := mustPhone(b, "")
			if !on {
				testworld.Must(b, os.Remove(filepath.Join(w.world.home, home.ConfigFile)))
			}
			w.must(b, "netsky", "up", "0", "--type", "demo", "--no-attach")
			time.Sleep(15 * time.Second) // what the start has caused is over
			const span = 30 * time.Second
			for b.Loop() {
				before := w.daemonTime()
				time.Sleep(span)
				b.ReportMetric(float64(w.daemonTime()-before)/float64(span)*100, "cpu-%")
			}
		})
	}
}

// daemonTime is the processor time that the daemon and its children have used.
func (w *phoneWorld) daemonTime() time.Duration {
	w.t.Helper()
	pid := testworld.Got(os.ReadFile(filepath.Join(w.world.home, home.DaemonPID)))(w.t)
	stat := testworld.Got(os.ReadFile("/proc/" + string(bytes.Fields(pid)[0]) + "/stat"))(w.t)
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')'):])
	sum := 0
	for _, i := range []int{12, 13, 14, 15} {
		n := testworld.Got(strconv.Atoi(string(f[i])))(w.t)
		sum += n
	}
	return time.Duration(sum) * time.Second / 100
}
