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

// commandTable is the table of verbs, what help and completion read.
type commandTable struct{ *app }

// cli returns the command table. docs/cli.md is generated from it.
func (a commandTable) cli() *cli.App {
	table := &cli.App{
		Name:            "netsky",
		Usage:           "run AI coding agents in tmux and deliver messages between them",
		HideVersion:     true,
		HideHelpCommand: true,
		Reader:          a.in,
		Writer:          a.out,
		ErrWriter:       a.err,
		ExitErrHandler:  func(*cli.Context, error) {}, // Main prints errors, once
		Action:          viewVerbs(a).summary,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "version", Aliases: []string{"v"}, Usage: "print the version"},
			&cli.StringFlag{Name: "on", Usage: "run the verb on another machine, by ssh: `HOST` is one of netsky.toml, or a destination of ssh's"},
		},
	}
	groups := a.groups()
	for _, g := range groups {
		table.Commands = append(table.Commands, g.verbs...)
	}
	table.Commands = append(table.Commands, daemonVerbs(a).runCommand(), agentVerbs(a).ioCommand(), agentVerbs(a).hookCommand(), a.packageCommand())
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

func (a commandTable) groups() []group {
	agents, mail, inbox, tasks, work, views, panes, owner := fleetVerbs(a), mailVerbs(a), inboxVerbs(a), taskVerbs(a), workVerbs(a), viewVerbs(a), paneVerbs(a), ownerVerbs(a)
	schedules, cost, phone, background, pages, setup, programs := scheduleVerbs(a), costVerbs(a), phoneVerbs(a), daemonVerbs(a), dashboardVerbs(a), setupVerbs(a), agentVerbs(a)
	return []group{
		{"Everyday", []*cli.Command{
			agents.upCommand(), mail.askCommand(), inbox.inboxCommand(), mail.replyCommand(), pages.dashboardCommand(), panes.attachCommand(), panes.peekCommand(),
			views.statusCommand(), views.showCommand(), owner.interruptCommand(), owner.needsCommand(), owner.approvalsCommand(), owner.approveCommand(), views.logCommand(),
			schedules.cronCommand(), schedules.loopCommand(), phone.imessageCommand(), hostVerbs(a).hostsCommand(), linkVerbs(a).linkCommand(), views.findCommand(), agents.restartCommand(), agents.downCommand(),
		}},
		{"From a task to your branch", []*cli.Command{
			tasks.taskCommand(), work.workCommand(), work.diffCommand(), work.checkCommand(), work.landCommand(), work.undoCommand(), cost.costCommand(),
		}},
		{"One agent, one message", []*cli.Command{
			agents.agentCommand(), agents.forgetCommand(), mail.promptCommand(), programs.codexCommand(), mail.sendCommand(), mail.cancelCommand(), mail.channelCommand(),
			mail.noteCommand(), owner.quietCommand(), owner.escalateCommand(),
		}},
		{"netsky itself", []*cli.Command{
			setup.initCommand(), setup.doctorCommand(), background.daemonCommand(), background.apiCommand(), background.watchdogCommand(), background.serviceCommand(), selfVerbs(a).selfCommand(), setup.demoCommand(), setup.drillCommand(),
			setup.uninstallCommand(), a.completionCommand(), setup.versionCommand(), a.helpCommand(),
		}},
	}
}

// isDeed reports whether a verb changes something and then prints what it did. What
// ask, inbox and drain print is their result, so they are not among them.
func isDeed(verb string) bool {
	switch verb {
	case "up", "down", "restart", "agent", "send", "reply", "interrupt", "cancel", "approve", "init", "uninstall", "imessage send", "imessage access allow", "imessage access deny",
		"work retire", "channel send", "channel route", "channel poison retry", "channel poison drop", "daemon stop", "daemon restart", "self update", "self rollback", "escalate", "watchdog tick", "cron add", "cron rm",
		"loop", "task add", "task start", "task done", "task block", "task cancel", "note add", "check", "land", "hosts install", "undo", "service install", "service uninstall",
		"service run", "link serve", "link invite", "link join", "link approve", "link reject", "link remove", "link leave", "link move":
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
		"imessage access allow", "imessage access deny", "imessage history", "link", "link approve", "link reject", "link remove", "link leave":
		return true
	}
	return false
}

func (a commandTable) mark(path string, list []*cli.Command) {
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
	b.WriteString("Run `netsky VERB --help` for details, `netsky` for a summary, `netsky --on HOST VERB` on another machine.\n")
	return b.String()
}

func (a commandTable) helpCommand() *cli.Command {
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

// unknownVerb returns the error of an unknown verb, with the one that was probably meant:
// what other programs' verb does here, or a similar word.
func (a commandTable) unknownVerb(word string, rest []string) error {
	if meant := spell.Habit(word, rest); meant != "" {
		return usagef("no verb %q: %s", word, meant)
	}
	var names []string
	for _, c := range a.cli().Commands {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	if best := spell.Nearest(word, names); best != "" {
		return usagef("no verb %q; did you mean %q? `netsky help` lists them", word, best)
	}
	return usagef("no verb %q; `netsky help` lists them", word)
}
