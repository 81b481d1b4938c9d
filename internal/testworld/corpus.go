// This file reads the files below testdata at the top of the tree, which the
// tests of several packages share. It is not in the binary.

package testworld

import (
	"os"
	"path/filepath"
	"testing"
)

// Files returns the contents of the files in one directory, by their names.
func Files(tb testing.TB, dir string) map[string]string {
	tb.Helper()
	top := filepath.Join(root(tb), "testdata", dir)
	list, err := os.ReadDir(top)
	if err != nil {
		tb.Fatal(err)
	}
	files := make(map[string]string, len(list))
	for _, e := range list {
		if e.Name() == "README.md" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(top, e.Name()))
		if err != nil {
			tb.Fatal(err)
		}
		files[e.Name()] = string(data)
	}
	if len(files) == 0 {
		tb.Fatalf("%s: no files", top)
	}
	return files
}

// root is the directory of go.mod: tests run in the directory of their package.
func root(tb testing.TB) string {
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	tb.Helper()
	tb.Fatal("no go.mod above the test's directory: ", err)
	return ""
}
