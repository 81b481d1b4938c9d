package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"netsky/home"
	"netsky/internal/proc"
)

// BenchmarkColdStart times `netsky version` as a whole process against a Go
// program that prints a line, the two in turn.
func BenchmarkColdStart(b *testing.B) {
	dir := b.TempDir()
	bare := mustHello(b, dir)
	ours := mustBuild(b, filepath.Join(dir, "netsky"), "-tags", "urfave_cli_no_docs,nethttpomithttp2", "netsky")
	run := func(argv ...string) func() {
		return func() {
			if err := exec.Command(argv[0], argv[1:]...).Run(); err != nil {
				b.Fatal(err)
			}
		}
	}
	compare(b, run(ours, "version"), run(bare))
}

// mustBuild builds a program without its symbols.
func mustBuild(b *testing.B, out string, args ...string) string {
	b.Helper()
	cmd := exec.Command("go", append([]string{"build", "-trimpath", "-ldflags=-s -w", "-o", out}, args...)...)
	if text, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, text)
	}
	return out
}

// mustHello builds the Go program that prints a line.
func mustHello(b *testing.B, dir string) string {
	b.Helper()
	file := filepath.Join(dir, "hello.go")
	if err := os.WriteFile(file, []byte("package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\") }\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	return mustBuild(b, filepath.Join(dir, "hello"), file)
}

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
	h, err := home.At(w.home)
	if err != nil {
		b.Fatal(err)
	}
	k, err := h.LoadKeeper("agent1")
	if err != nil {
		b.Fatal(err)
	}
	below, err := proc.Descendants(k.PID, "")
	if err != nil {
		b.Fatal(err)
	}
	total := 0
	for _, p := range append(below, k.Process) {
		out, err := exec.Command("ps", "-o", "rss=", "-p", strconv.Itoa(p.PID)).Output()
		if err != nil {
			b.Fatal(err)
		}
		kib, err := strconv.Atoi(strings.TrimSpace(string(out)))
		if err != nil {
			b.Fatal(err)
		}
		total += kib
	}
	b.ReportMetric(float64(asked), "requests-by-up")
	b.ReportMetric(float64(cold.Milliseconds()), "cold-ms")
	b.ReportMetric(float64(warm[len(warm)/2].Milliseconds()), "warm-ms")
	b.ReportMetric(float64(total)/1024, "rss-MB")
	b.ReportMetric(0, "ns/op")
}
