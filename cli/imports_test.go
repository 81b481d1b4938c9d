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

	"netsky/internal/testworld"
)

// mustRooms reads the table of rooms in ARCHITECTURE.md: what the packages of each may import.
func mustRooms(t *testing.T) map[string][]string {
	t.Helper()
	data := testworld.Got(os.ReadFile("../ARCHITECTURE.md"))(t)
	rooms := make(map[string][]string)
	row := regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|[^|]*\\| ([^|]*) \\|$")
	for _, m := range row.FindAllStringSubmatch(string(data), -1) {
		rooms[m[1]] = strings.Split(m[2], ", ")
	}
	return rooms
}

// within reports whether the package is the entry, or a package below it.
func within(name, entry string) bool {
	return name == entry || strings.HasPrefix(name, entry+"/") || entry == "all"
}

func TestImports(t *testing.T) {
	out := testworld.Got(exec.Command("go", "list", "-tags", "faults,pictures", "-json=ImportPath,Imports,Doc", "netsky/...").Output())(t)
	rooms, used := mustRooms(t), make(map[string]bool)
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p struct {
			ImportPath, Doc string
			Imports         []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, "netsky"), "/")
		if p.Doc == "" {
			t.Errorf("package %q: has no package comment", name)
		}
		room, _, _ := strings.Cut(name, "/")
		if _, ok := rooms[room]; !ok && room != "" {
			t.Errorf("package %q: its room is not in the table", name)
		}
		for _, i := range p.Imports {
			ours, ok := strings.CutPrefix(i, "netsky/")
			if !ok || room == "" || within(ours, room) {
				continue
			}
			allowed := false
			for _, entry := range rooms[room] {
				if within(ours, entry) {
					allowed, used[room+" "+entry] = true, true
				}
			}
			if !allowed {
				t.Errorf("package %q imports %q, which the table does not allow", name, ours)
			}
		}
	}
	for room, entries := range rooms {
		for _, entry := range entries {
			if entry != "all" && !used[room+" "+entry] {
				t.Errorf("room %q: imports nothing of %q, which the table allows", room, entry)
			}
		}
	}
}

// The binary holds nothing that is only for tests.
func TestImportsOfTheBinary(t *testing.T) {
	out := testworld.Got(exec.Command("go", "list", "-deps", "netsky").Output())(t)
	for _, name := range []string{"netsky/internal/testworld", "netsky/internal/testhosts", "gotmux", "chromedp", "rogpeppe", "testing"} {
		testworld.Equal(t, regexp.MustCompile(`(?m)^.*\b`+name+`\b.*$`).FindString(string(out)), "", "the binary holds")
	}
}
