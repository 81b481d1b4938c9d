package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"netsky/internal/testworld"
)

// BenchmarkColdStart times `netsky version` as a whole process against a Go
// program that prints a line, the two in turn.
func BenchmarkColdStart(b *testing.B) {
	dir := b.TempDir()
	bare := mustHello(b, dir)
	ours := filepath.Join(dir, "netsky")
	testworld.Must(b, testworld.Build("-ldflags", "-s -w", "-o", ours))
	run := func(argv ...string) func() {
		return func() {
			testworld.Must(b, exec.Command(argv[0], argv[1:]...).Run())
		}
	}
	compare(b, run(ours, "version"), run(bare))
}

// mustHello builds the Go program that prints a line.
func mustHello(b *testing.B, dir string) string {
	b.Helper()
	file := filepath.Join(dir, "hello.go")
	testworld.Must(b, os.WriteFile(file, []byte("package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\") }\n"), 0o600))
	out := filepath.Join(dir, "hello")
	if text, err := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, file).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, text)
	}
	return out
}
