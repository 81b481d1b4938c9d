package cli

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"netsky/internal/testworld"
)

var rewrite = flag.Bool("update", false, "write the generated documents anew")

// TestDocsUpToDate keeps docs/cli.md as the command table says.
// `go test ./cli -run Docs -update` writes it.
func TestDocsUpToDate(t *testing.T) {
	const file = "../docs/cli.md"
	want := document(commandTable{(&app{})}.cli())
	if *rewrite {
		testworld.Must(t, os.WriteFile(file, want, 0o644))
	}
	have, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(have, want) {
		t.Errorf("%s is stale (%v): go test ./cli -run Docs -update", file, err)
	}
}

// TestLessons: each test that docs/lessons.md names exists, and no requirement is dropped.
func TestLessons(t *testing.T) {
	t.Parallel()
	data := testworld.Got(os.ReadFile("../docs/lessons.md"))(t)
	named := regexp.MustCompile("`(?:([a-z/]+) ((?:Test|Fuzz)[A-Za-z]+)|([a-z_]+\\.txtar))`")
	lessons := 0
	for line := range strings.Lines(string(data)) {
		cells := strings.Split(line, " | ")
		if len(cells) != 4 || strings.HasPrefix(line, "| what goes wrong") {
			continue
		}
		lessons++
		tests := named.FindAllStringSubmatch(cells[2], -1)
		if len(tests) == 0 || len(tests) != strings.Count(cells[2], "`")/2 {
			t.Errorf("%s: what is named is no test: %s", cells[0], cells[2])
		}
		for _, m := range tests {
			if !testExists(t, m[1], m[2], m[3]) {
				t.Errorf("%s: there is no %s", cells[0], m[0])
			}
		}
	}
	if lessons < 71 {
		t.Errorf("%d lessons, want at least 71", lessons)
	}
}

// testExists reports whether there is a script, or a function in one of a package's tests.
func testExists(t *testing.T, pkg, name, script string) bool {
	t.Helper()
	if script != "" {
		_, err := os.Stat("testdata/script/" + script)
		if err != nil {
			_, err = os.Stat("testdata/script/live/" + script)
		}
		return err == nil
	}
	files := testworld.Got(filepath.Glob("../" + pkg + "/*_test.go"))(t)
	return slices.ContainsFunc(files, func(file string) bool {
		data, err := os.ReadFile(file)
		return err == nil && bytes.Contains(data, []byte("\nfunc "+name+"("))
	})
}

// TestBoolFlagsTakeNoValue: a word in backquotes in a flag's usage is shown as its value.
func TestBoolFlagsTakeNoValue(t *testing.T) {
	var check func(path string, list []*cli.Command)
	check = func(path string, list []*cli.Command) {
		for _, c := range list {
			for _, f := range c.Flags {
				if b, ok := f.(*cli.BoolFlag); ok && strings.Contains(b.Usage, "`") {
					t.Errorf("%s %s --%s: backquotes in %q", path, c.Name, b.Name, b.Usage)
				}
			}
			check(path+" "+c.Name, c.Subcommands)
		}
	}
	a := commandTable{(&app{})}.cli()
	check("netsky", append([]*cli.Command{{Flags: a.Flags}}, a.Commands...))
}

func document(a *cli.App) []byte {
	var b bytes.Buffer
	b.WriteString("# The verbs\n\nGenerated from the command table; `netsky VERB --help` prints the same text.\n\n")
	b.WriteString("Results go to stdout, messages for people to stderr as `netsky: …`. The exit status is 0 for done, 1 for\n")
	b.WriteString("failed, 2 for wrong usage, bad input or not allowed, 3 for partly done or not yet. Agents are written\n")
	b.WriteString("`agent3` or `3`, `agentinfinity` or `infinity`.\n")
	for _, c := range a.Commands {
		writeCommand(&b, "netsky", c)
	}
	return b.Bytes()
}

func writeCommand(b *bytes.Buffer, path string, c *cli.Command) {
	if c.Hidden {
		return
	}
	path += " " + c.Name
	if len(c.Subcommands) == 0 || c.Name == "demo" {
		usage := path
		if len(c.Flags) > 0 {
			usage += " [options]"
		}
		if c.ArgsUsage != "" {
			usage += " " + c.ArgsUsage
		}
		fmt.Fprintf(b, "\n## %s\n\n%s.\n", usage, upper(c.Usage))
	} else {
		fmt.Fprintf(b, "\n## %s\n\n%s.\n", path, upper(c.Usage))
	}
	if c.Description != "" {
		fmt.Fprintf(b, "\n%s\n", c.Description)
	}
	if len(c.Flags) > 0 {
		b.WriteString("\n| option | |\n|---|---|\n")
		for _, f := range c.Flags {
			if v, ok := f.(cli.VisibleFlag); ok && v.IsVisible() {
				name, usage, _ := strings.Cut(f.String(), "\t")
				fmt.Fprintf(b, "| `%s` | %s |\n", name, strings.ReplaceAll(usage, "|", "\\|"))
			}
		}
	}
	for _, s := range c.Subcommands {
		writeCommand(b, path, s)
	}
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// TestHelpGroups: `netsky help` lists the verbs of the README's tables together, in their order.
func TestHelpGroups(t *testing.T) {
	readme := testworld.Got(os.ReadFile("../README.md"))(t)
	verb := regexp.MustCompile("`netsky ([a-z]+)")
	for _, g := range (commandTable{(&app{})}).groups()[:2] {
		_, table, ok := strings.Cut(string(readme), "\n## "+g.title+"\n")
		table, _, _ = strings.Cut(table, "\n\n```")
		table, _, _ = strings.Cut(table, "\n## ")
		var want, have []string
		for _, m := range verb.FindAllStringSubmatch(table, -1) {
			if !slices.Contains(want, m[1]) {
				want = append(want, m[1])
			}
		}
		for _, c := range g.verbs {
			have = append(have, c.Name)
		}
		if !ok || !slices.Equal(have, want) {
			t.Errorf("%s: help lists %q, the README %q", g.title, have, want)
		}
	}
}
