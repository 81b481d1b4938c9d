package cli

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"netsky/cli/spell"
	"netsky/config"
)

// cli returns the command table. docs/cli.md is generated from it.
func (a *app) cli() *cli.App {
	table := &cli.App{
		Name:            "netsky",
		Usage:           "run AI coding agents in tmux and deliver messages between them",
		HideVersion:     true,
		HideHelpCommand: true,
		Reader:          a.in,
		Writer:          a.out,
		ErrWriter:       a.err,
		ExitErrHandler:  func(*cli.Context, error) {}, // Main prints errors, once
		Action:          a.summary,
		Flags:           []cli.Flag{&cli.BoolFlag{Name: "version", Aliases: []string{"v"}, Usage: "print the version"}},
	}
	groups := a.groups()
	for _, g := range groups {
		table.Commands = append(table.Commands, g.verbs...)
	}
	table.Commands = append(table.Commands, a.runCommand(), a.ioCommand(), a.hookCommand())
	table.OnUsageError = usageError("netsky")
	table.CustomAppHelpTemplate = listed(table.Usage, groups)
	settle("netsky", table.Commands)
	a.mark("", table.Commands)
	return table
}

// A group is what `netsky help` lists together, as the README does.
type group struct {
	title string
	verbs []*cli.Command
}

func (a *app) groups() []group {
	return []group{
		{"Everyday", []*cli.Command{
			a.upCommand(), a.askCommand(), a.inboxCommand(), a.replyCommand(), a.dashboardCommand(), a.attachCommand(), a.peekCommand(),
			a.statusCommand(), a.showCommand(), a.interruptCommand(), a.needsCommand(), a.approvalsCommand(), a.approveCommand(), a.logCommand(),
			a.cronCommand(), a.loopCommand(), a.imessageCommand(), a.findCommand(), a.restartCommand(), a.downCommand(),
		}},
		{"From a task to your branch", []*cli.Command{
			a.taskCommand(), a.workCommand(), a.diffCommand(), a.checkCommand(), a.landCommand(), a.undoCommand(), a.costCommand(),
		}},
		{"One agent, one message", []*cli.Command{
			a.agentCommand(), a.forgetCommand(), a.promptCommand(), a.codexCommand(), a.sendCommand(), a.cancelCommand(), a.channelCommand(),
			a.noteCommand(), a.quietCommand(), a.escalateCommand(),
		}},
		{"netsky itself", []*cli.Command{
			a.initCommand(), a.doctorCommand(), a.daemonCommand(), a.apiCommand(), a.watchdogCommand(), a.serviceCommand(), a.demoCommand(), a.drillCommand(),
			a.uninstallCommand(), a.completionCommand(), a.versionCommand(), a.helpCommand(),
		}},
	}
}

// isDeed reports whether a verb changes something and then prints what it did. What
// ask, inbox and drain print is their result, so they are not among them.
func isDeed(verb string) bool {
	switch verb {
	case "up", "down", "restart", "agent", "send", "reply", "interrupt", "cancel", "approve", "init", "uninstall", "imessage send", "imessage access allow", "imessage access deny",
		"work retire", "channel send", "channel route", "channel poison retry", "channel poison drop", "daemon stop", "escalate", "watchdog tick", "cron add", "cron rm",
		"loop", "task add", "task start", "task done", "task block", "task cancel", "note add", "check", "land", "undo", "service install", "service uninstall",
		"service run":
		return true
	}
	return false
}

// startsNothing reports whether a verb continues if netsky.toml has a mistake that
// can't affect it. Verbs that start something obey the whole file and so stop.
func startsNothing(verb string) bool {
	switch verb {
	case "status", "needs", "work", "diff", "work gone", "work retire", "cost", "quiet", "escalate", "forget", "cron add", "loop", "peek", "show", "log", "find",
		"attach", "approvals", "inbox", "ask", "reply",
		"interrupt", "cancel", "approve", "down", "uninstall",
		"send", "channel send", "channel drain", "channel ls", "channel route", "channel poison ls", "channel poison show",
		"channel poison retry", "channel poison drop", "cron ls", "cron rm",
		"task add", "task ls", "task show", "task done", "task block", "task cancel", "note add", "note ls",
		"imessage access allow", "imessage access deny", "imessage history":
		return true
	}
	return false
}

func (a *app) mark(path string, list []*cli.Command) {
	for _, c := range list {
		act, deed, lenient := c.Action, isDeed(path+c.Name), startsNothing(path+c.Name)
		if deed || lenient {
			c.Action = func(c *cli.Context) error {
				if a.deed = deed; lenient {
					a.bears = config.Parts
				}
				return act(c)
			}
		}
		a.mark(path+c.Name+" ", c.Subcommands)
	}
}

// settle sets up every command: a wrong option, or an argument to a command without
// any, is an error instead of a page of help, and "help" is no subcommand. With Args
// set, a command without arguments reports them itself, with what to write instead.
func settle(path string, list []*cli.Command) {
	for _, c := range list {
		full := path + " " + c.Name
		c.HideHelpCommand = true
		c.OnUsageError = usageError(full)
		if act := c.Action; c.ArgsUsage == "" && len(c.Subcommands) == 0 && !c.Args {
			c.Action = func(c *cli.Context) error {
				if c.NArg() > 0 {
					return usagef("%s: takes no arguments", strings.TrimPrefix(full, "netsky "))
				}
				return act(c)
			}
		}
		c.Args = false // otherwise its help shows arguments
		for _, f := range c.Flags {
			switch f := f.(type) {
			case *cli.BoolFlag:
				f.DisableDefaultText = true
			case *cli.DurationFlag:
				if f.Value == 0 && f.DefaultText == "" {
					f.DefaultText = "none"
				}
			}
		}
		settle(full, c.Subcommands)
	}
}

func usageError(verb string) cli.OnUsageErrorFunc {
	return func(c *cli.Context, err error, _ bool) error {
		if errors.Is(err, flag.ErrHelp) { // asked of a verb two levels down
			return cli.ShowSubcommandHelp(c)
		}
		of := strings.TrimPrefix(strings.TrimPrefix(verb, "netsky"), " ")
		if of != "" {
			of += ": "
		}
		return usagef("%s%v; `%s --help` lists the options", of, err, verb)
	}
}

// listed returns the page of all verbs.
func listed(usage string, groups []group) string {
	var b strings.Builder
	fmt.Fprintf(&b, "netsky: %s\n\n", usage)
	for _, g := range groups {
		fmt.Fprintf(&b, "%s\n", g.title)
		for _, c := range g.verbs {
			fmt.Fprintf(&b, "  %-12s%s\n", c.Name, c.Usage)
		}
		b.WriteByte('\n')
	}
	b.WriteString("Run `netsky VERB --help` for details, `netsky` for a summary.\n")
	return b.String()
}

func (a *app) helpCommand() *cli.Command {
	return &cli.Command{
		Name: "help", Usage: "list the verbs, or describe one", ArgsUsage: "[VERB…]",
		Action: func(c *cli.Context) error {
			table, line := a.cli(), []string{"netsky"}
			list := table.Commands
			for _, word := range c.Args().Slice() {
				if len(line) > 1 && len(list) == 0 {
					break // `help down agent1` is about down
				}
				at := slices.IndexFunc(list, func(x *cli.Command) bool { return x.HasName(word) })
				line = append(line, word)
				switch meant := spell.Habit(word, nil); {
				case at < 0 && len(line) == 2 && meant != "":
					return usagef("help: no verb %q: %s", word, meant)
				case at < 0:
					return usagef("help: no verb %q; `netsky help` lists them", strings.Join(line[1:], " "))
				}
				list = list[at].Subcommands
			}
			return table.RunContext(c.Context, append(line, "--help"))
		},
	}
}
