package cli_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// imports says who may import whom, among our own packages. ARCHITECTURE.md
// shows it as a table; adding an edge means changing it here.
var imports = map[string]string{
	"agent":                  "",
	"tmux":                   "",
	"bus":                    "agent",
	"prompts":                "agent",
	"store":                  "agent",
	"spawn/keeper":           "agent",
	"spawn":                  "agent tmux prompts bus store spawn/keeper",
	"spawn/demo":             "agent bus",
	"codex":                  "agent bus store",
	"codex/loopmodel":        "",
	"spawn/claude":           "agent",
	"spawn/claude/loopmodel": "",
	"spawn/worktree":         "",
	"bus/mcp":                "agent bus store bus/mcp/sdkenv",
	"bus/mcp/sdkenv":         "",
	"dashboard":              "agent bus store",
	"daemon/observe":         "agent bus store",
	"daemon":                 "agent tmux bus store spawn spawn/keeper dashboard daemon/observe",
	"cli":                    "agent tmux prompts bus store spawn spawn/keeper spawn/demo spawn/claude spawn/worktree bus/mcp codex dashboard daemon daemon/observe",
	"":                       "cli",
}

func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,Doc", "netsky/...").Output()
	if err != nil {
		t.Fatal(err)
	}
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
			if ours, ok := strings.CutPrefix(i, "netsky/"); ok && !slices.Contains(strings.Fields(allowed), ours) {
				t.Errorf("package %q imports %q, which the table does not allow", name, ours)
			}
		}
	}
}
