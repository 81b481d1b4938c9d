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
	"time"

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
	fmt.Fprintf(&b, "# The verbs\n\nGenerated from the command table; `netsky VERB --help` prints the same text.\n\n%s\n", manual)
	for _, p := range pages("netsky", a.Commands) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", p.usage, p.about)
		if p.details != "" {
			fmt.Fprintf(&b, "\n%s\n", p.details)
		}
		if len(p.options) > 0 {
			b.WriteString("\n| option | |\n|---|---|\n")
		}
		for _, o := range p.options {
			fmt.Fprintf(&b, "| `%s` | %s |\n", o[0], strings.ReplaceAll(o[1], "|", "\\|"))
		}
	}
	return b.Bytes()
}

// TestManPage: each verb and option is in the page, and no text is taken for a request.
func TestManPage(t *testing.T) {
	t.Parallel()
	table := commandTable{(&app{})}.cli()
	page := manPage(table, time.Unix(1<<30, 0))
	for _, p := range pages("netsky", table.Commands) {
		for _, want := range append([][2]string{{p.usage, p.about}}, p.options...) {
			testworld.Contains(t, page, roff(want[0]), "the manual page")
			testworld.Contains(t, page, "\n"+roff(want[1])+"\n", "the manual page")
		}
	}
	request := regexp.MustCompile(`^\.(TH NETSKY 1 2004-01-10 .*|SH [A-Z]+|SS netsky .*|B netsky|PP|TP|nf|fi)\n$`)
	for line := range strings.Lines(page) {
		if (line[0] == '.' || line[0] == '\'') && !request.MatchString(line) {
			t.Errorf("a request: %s", line)
		}
	}
	testworld.Equal(t, roff(".a `b-c` \\n\n'd` \"^~"), "\\&.a \\fBb\\-c\\fR \\en\n\\(aqd\\(ga \\(dq\\(ha\\(ti", "roff")
}

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
