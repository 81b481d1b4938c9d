package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/fleet/service"
)

// A page is what the manual says of one command.
type page struct {
	usage   string // netsky send [options] TO TEXT
	about   string
	details string
	options [][2]string // as it is written, and what it does
}

// manual is what the pages have in common.
const manual = "Results go to stdout, messages for people to stderr as `netsky: …`. The exit status is 0 for done, 1 for\n" +
	"failed, 2 for wrong usage, bad input or not allowed, 3 for partly done or not yet. Agents are written\n" +
	"`agent3` or `3`, `agentinfinity` or `infinity`. `netsky --on HOST VERB …` runs a verb on another machine, by ssh."

// pages returns those of all commands that are not hidden.
func pages(path string, list []*cli.Command) (all []page) {
	for _, c := range list {
		if c.Hidden {
			continue
		}
		p := page{usage: path + " " + c.Name, about: strings.ToUpper(c.Usage[:1]) + c.Usage[1:] + ".", details: c.Description}
		if len(c.Subcommands) == 0 || c.Name == "demo" {
			if len(c.Flags) > 0 {
				p.usage += " [options]"
			}
			p.usage = strings.TrimSuffix(p.usage+" "+c.ArgsUsage, " ")
		}
		for _, f := range c.Flags {
			if v, ok := f.(cli.VisibleFlag); ok && v.IsVisible() {
				name, usage, _ := strings.Cut(f.String(), "\t")
				p.options = append(p.options, [2]string{name, usage})
			}
		}
		all = append(append(all, p), pages(path+" "+c.Name, c.Subcommands)...)
	}
	return all
}

// manPage returns netsky(1): one page with all verbs.
func manPage(table *cli.App, date time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH NETSKY 1 %s \"netsky %s\" \"User Commands\"\n", date.UTC().Format(time.DateOnly), roff(Version))
	fmt.Fprintf(&b, ".SH NAME\nnetsky \\- %s\n.SH SYNOPSIS\n.B netsky\n[\\fIVERB\\fR [\\fIoptions\\fR] \\fIarguments\\fR]\n", roff(table.Usage))
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n.SH VERBS\n", roff(manual))
	for _, p := range pages("netsky", table.Commands) {
		fmt.Fprintf(&b, ".SS %s\n%s\n", roff(p.usage), roff(p.about))
		for part := range strings.SplitSeq(p.details, "\n\n") {
			switch {
			case part == "":
			case strings.Contains(part, "  "): // lines with columns
				fmt.Fprintf(&b, ".PP\n.nf\n%s\n.fi\n", roff(part))
			default:
				fmt.Fprintf(&b, ".PP\n%s\n", roff(part))
			}
		}
		for _, o := range p.options {
			fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n%s\n", roff(o[0]), roff(o[1]))
		}
	}
	return b.String()
}

var (
	roffEscapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`)
	quotedWords = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("`([^`]+)`") })
	roffControl = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^([.'])`) })
)

// roff escapes a text; what is in backquotes is bold.
func roff(s string) string {
	s = quotedWords().ReplaceAllString(roffEscapes.Replace(s), `\fB$1\fR`)
	return roffControl().ReplaceAllString(strings.ReplaceAll(s, "`", `\(ga`), `\&$1`)
}

// packageCommand is for scripts/release.
func (a commandTable) packageCommand() *cli.Command {
	return &cli.Command{
		Name: "package", Usage: "write what a package has besides the program", ArgsUsage: "DIR", Hidden: true,
		Description: "For scripts/release: the completions, the manual page (of the date in SOURCE_DATE_EPOCH) and the systemd units of\n" +
			"/usr/bin/netsky, into directories of those names in DIR.",
		Action: func(c *cli.Context) error {
			dir, err := one(c, "a directory")
			if err != nil {
				return err
			}
			date := time.Now()
			if n, err := strconv.ParseInt(a.getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
				date = time.Unix(n, 0)
			}
			units, err := service.Packaged("/usr/bin/netsky")
			if err != nil {
				return err
			}
			files := map[string]string{
				"completions/netsky.bash": Script("bash"), "completions/_netsky": Script("zsh"), "completions/netsky.fish": Script("fish"),
				"man/netsky.1": manPage(a.cli(), date),
			}
			for name, text := range units {
				files[filepath.Join("systemd", name)] = text
			}
			for name, text := range files {
				file := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					return err
				}
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
