//go:build live

package cli_test

import (
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/testworld"
)

// BenchmarkCodexAgent measures a resident Codex agent against the model on the
// loopback: its first turn, a warm one, and the memory of all its processes.
func BenchmarkCodexAgent(b *testing.B) {
	w, model := mustCodex(b)
	w.must(b, "netsky", "agent", "1", "--type", "codex", "--yes")
	asked := len(model.Requests())
	ask := func() time.Duration {
		began := time.Now()
		w.must(b, "netsky", "ask", "agent1", "hello")
		return time.Since(began)
	}
	cold := ask()
	var warm []time.Duration
	for b.Loop() {
		warm = append(warm, ask())
	}
	slices.Sort(warm)
	h := testworld.Got(home.At(w.home))(b)
	k := testworld.Got(h.LoadKeeper("agent1"))(b)
	below := testworld.Got(proc.Descendants(k.PID, ""))(b)
	total := 0
	for _, p := range append(below, k.Process) {
		out := testworld.Got(exec.Command("ps", "-o", "rss=", "-p", strconv.Itoa(p.PID)).Output())(b)
		kib := testworld.Got(strconv.Atoi(strings.TrimSpace(string(out))))(b)
		total += kib
	}
	b.ReportMetric(float64(asked), "requests-by-up")
	b.ReportMetric(float64(cold.Milliseconds()), "cold-ms")
	b.ReportMetric(float64(warm[len(warm)/2].Milliseconds()), "warm-ms")
	b.ReportMetric(float64(total)/1024, "rss-MB")
	b.ReportMetric(0, "ns/op")
}
