package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"netsky/cli/spell"
	"netsky/internal/testworld"

	"github.com/urfave/cli/v2"
)

func TestFlagsFirst(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"netsky", "netsky"},
		{"netsky up 2 --json", "netsky up --json 2"},
		{"netsky up 2 --type demo", "netsky up --type demo 2"},
		{"netsky up 2 --type=demo --json", "netsky up --type=demo --json 2"},
		{"netsky up --type demo 2", "netsky up --type demo 2"},
		{"netsky agent 3 --fresh", "netsky agent --fresh 3"},
		{"netsky channel send agent1 hi --kind brief", "netsky channel send --kind brief agent1 hi"},
		{"netsky channel send agent1 -- --kind", "netsky channel send -- agent1 --kind"},
		{"netsky ask agent0 -x=1,2 a", "netsky ask -x=1,2 agent0 a"},
		{"netsky ask agent0 -5", "netsky ask -- agent0 -5"},
		{"netsky ask agent0 - --json", "netsky ask --json -- agent0 -"},
		{"netsky demo --quick", "netsky demo --quick"},
		{"netsky demo serve agent1", "netsky demo serve agent1"},
		{"netsky nosuch up --json", "netsky nosuch up"},

		// Help and version are all that is left where they are asked for.
		{"netsky --help down agent5", "netsky down --help"},
		{"netsky -h down agent5 --force", "netsky down --help"},
		{"netsky --version down agent5", "netsky --version"},
		{"netsky -v", "netsky --version"},
		{"netsky status -v", "netsky status -v"},
		{"netsky down agent5 --help", "netsky down --help"},
		{"netsky agent 1 --objective --help", "netsky agent --help"},
		{"netsky --help channel poison drop 1 2", "netsky channel poison drop --help"},
		{"netsky channel --help send agent1 hi", "netsky channel send --help"},
		{"netsky channel nosuch --help", "netsky channel nosuch"},
		{"netsky --help nosuch", "netsky nosuch"},
		{"netsky --help -- down agent5", "netsky --help"},
		{"netsky --json down --help", "netsky --help"},
		{"netsky ask agent1 -- --help", "netsky ask -- agent1 --help"},
		{"netsky ask agent1 -- -h hi", "netsky ask -- agent1 -h hi"},
	} {
		got := strings.Join(spell.FlagsFirst(commandTable{(&app{})}.cli(), strings.Fields(tt.in)), " ")
		testworld.Equal(t, got, tt.want, "flagsFirst(%s)", tt.in)
	}
	text := "-v is what, and -- too?"
	got := spell.FlagsFirst(commandTable{(&app{})}.cli(), []string{"netsky", "ask", "agent0", text, "--json"})
	if want := []string{"netsky", "ask", "--json", "--", "agent0", text}; strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("a text with a dash: %q, want %q", got, want)
	}
}

// TestHelpNeverRuns asks for help about each verb, and for the version, in every
// place that people put it.
func TestHelpNeverRuns(t *testing.T) {
	t.Setenv("NETSKY_HOME", t.TempDir()+"/none")
	run := func(args ...string) (ran, out string, err error) {
		var b bytes.Buffer
		a := &app{out: &b, err: &b, getenv: func(string) string { return "" }}
		table := commandTable{a}.cli()
		var watch func(path string, list []*cli.Command)
		watch = func(path string, list []*cli.Command) {
			for _, c := range list {
				if c.Name != "help" {
					c.Action = func(c *cli.Context) error { ran = path + c.Command.Name; return nil }
				}
				watch(path+c.Name+" ", c.Subcommands)
			}
		}
		watch("", table.Commands)
		err = table.RunContext(t.Context(), spell.FlagsFirst(table, append([]string{"netsky"}, args...)))
		return ran, b.String(), err
	}
	var each func(path []string, list []*cli.Command)
	each = func(path []string, list []*cli.Command) {
		for _, c := range list {
			verb := append(path[:len(path):len(path)], c.Name)
			each(verb, c.Subcommands)
			for _, how := range []string{"--help V", "-h V", "V --help", "V -h", "--help V agent5", "-h V agent5", "V --help agent5", "V agent5 --help", "V agent5 -h", "--help V agent5 --json", "--version V", "-v V agent5", "help V agent5"} {
				if len(c.Subcommands) > 0 && strings.Contains(how, "agent5") {
					continue // agent5 is no verb below it
				}
				var args []string
				for word := range strings.FieldsSeq(how) {
					if word == "V" {
						args = append(args, verb...)
					} else {
						args = append(args, word)
					}
				}
				ran, out, err := run(args...)
				want := c.Usage
				if args[0] == "--version" || args[0] == "-v" {
					want, ran = "netsky "+Version, strings.TrimPrefix(ran, "version")
				}
				if ran != "" || err != nil || !strings.Contains(out, want) {
					t.Errorf("%q ran %q, error %v, and printed no %q:\n%s", args, ran, err, want, out)
				}
			}
		}
	}
	each(nil, commandTable{(&app{})}.cli().Commands)
	if ran, _, _ := run("down", "--version"); ran != "" {
		t.Error("down --version ran", ran)
	}
}

// TestCheck: a wrong option is refused by its name, wherever it stands.
func TestCheck(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"netsky up 2 --type demo", ""},
		{"netsky status --line --width 80", ""},
		{"netsky status --width 80", "status: --width needs --line; `netsky status --help` lists the options"},
		{"netsky status -w --json", "status: --watch does not go with --json; "},
		{"netsky status --line -v", "status: --line does not go with --verbose; "},
		{"netsky ls --line --json", "ls: --line does not go with --json; "},
		{"netsky status --line=false -v", ""},
		{"netsky inbox --cursor x", "inbox: --cursor needs --sent; "},
		{"netsky channel send agent1 hi --timeout 5s", "channel send: --timeout needs --wait; "},
		{"netsky channel send agent1 hi --timeout 5s --wait delivered", ""},
		{"netsky codex 1 --headless --drain", "codex: --headless needs --serve; "},
		{"netsky dashboard --rotate --browsers", "dashboard: --rotate does not go with --browsers; "},
		{"netsky ask agent0 --wait 90s hi", ""},
		{"netsky up --help --foo", ""},
		{"netsky nosuch --foo", ""}, // the verb is what is wrong
		{"netsky up 2 --foo", "up: no option --foo; `netsky up --help` lists the options"},
		{"netsky status --on build1", "status: --on comes before the verb: `netsky --on … status`"},
		{"netsky --foo", "no option --foo; `netsky --help` lists the options"},
		{"netsky up --type", "up: --type: needs a value; "},
		{"netsky log -n", "log: -n: needs a value; "},
		{"netsky log -n x", `log: -n "x": must be a number; `},
		{"netsky ask agent0 hi --wait=5", `ask: --wait "5": must be a duration, `},
		{"netsky status --json=maybe", `status: --json "maybe": not a valid value; `},
		{"netsky channel poison ls --bar", "channel poison ls: no option --bar; "},
	} {
		err := spell.Check(commandTable{(&app{})}.cli(), optionRules, strings.Fields(tt.in))
		if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("Check(%s) = %v, want %q", tt.in, err, tt.want)
		}
	}
}

// TestOptionRules: the rules name options that there are, and an option whose help says
// that it goes with another has a rule.
func TestOptionRules(t *testing.T) {
	seen := make(map[string]bool)
	var each func(path []string, list []*cli.Command)
	each = func(path []string, list []*cli.Command) {
		for _, c := range list {
			verb := strings.Join(append(path, c.Name), " ")
			seen[verb] = true
			names := make(map[string]bool)
			for _, f := range c.Flags {
				names[f.Names()[0]] = true
			}
			rules := optionRules[verb]
			for _, r := range rules {
				if other := r.Needs + r.Not; !names[r.Option] || !names[other] {
					t.Errorf("%s: a rule about --%s and --%s; its options are %v", verb, r.Option, other, names)
				}
			}
			for _, f := range c.Flags {
				usage := f.(cli.DocGenerationFlag).GetUsage()
				other, only := strings.CutPrefix(usage, "with --")
				if other, _, _ = strings.Cut(other, ":"); only && !slices.Contains(rules, spell.Rule{Option: f.Names()[0], Needs: other}) {
					t.Errorf("%s: --%s has no rule: %s", verb, f.Names()[0], usage)
				}
			}
			each(append(path, c.Name), c.Subcommands)
		}
	}
	each(nil, commandTable{(&app{})}.cli().Commands)
	for verb := range optionRules {
		if !seen[verb] {
			t.Errorf("rules for %q, which is no verb", verb)
		}
	}
}
