package cli

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

var update = flag.Bool("update", false, "write the generated documents anew")

// TestDocsUpToDate keeps docs/cli.md as the command table says.
// `go test ./cli -run Docs -update` writes it.
func TestDocsUpToDate(t *testing.T) {
	const file = "../docs/cli.md"
	want := document((&app{}).cli())
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(have, want) {
		t.Errorf("%s is stale (%v): go test ./cli -run Docs -update", file, err)
	}
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
	a := (&app{}).cli()
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
