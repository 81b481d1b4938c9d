package cli_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// mustImports reads the table of packages in ARCHITECTURE.md: which of ours each
// may import.
func mustImports(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]string{"": "cli"}
	row := regexp.MustCompile("(?m)^\\| `([a-z/]+)` \\|[^|]*\\| ([^|]*) \\|$")
	for _, m := range row.FindAllStringSubmatch(string(data), -1) {
		table[m[1]] = m[2]
	}
	return table
}

// mayImport reports whether a cell of the table names the package.
func mayImport(cell, name string) bool {
	for entry := range strings.SplitSeq(cell, ", ") {
		if parent, ok := strings.CutSuffix(entry, "/…"); ok {
			if name == parent || strings.HasPrefix(name, parent+"/") {
				return true
			}
		} else if name == entry {
			return true
		}
	}
	return false
}

func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,Doc", "netsky/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	imports := mustImports(t)
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for seen := 0; ; seen++ {
		var p struct {
			ImportPath, Doc string
			Imports         []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			if seen != len(imports) {
				t.Errorf("%d packages, the table has %d", seen, len(imports))
			}
			return
		} else if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, "netsky"), "/")
		allowed, ok := imports[name]
		if !ok {
			t.Errorf("package %q: not in the table", name)
		}
		if p.Doc == "" {
			t.Errorf("package %q: has no package comment", name)
		}
		for _, i := range p.Imports {
			if ours, ok := strings.CutPrefix(i, "netsky/"); ok && !mayImport(allowed, ours) {
				t.Errorf("package %q imports %q, which the table does not allow", name, ours)
			}
		}
	}
}
