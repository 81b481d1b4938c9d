package cli

import (
	"errors"
	"io"

	"github.com/urfave/cli/v2"

	"netsky/bus/mcp"
	"netsky/fleet"
	"netsky/fleet/bridge"
	"netsky/work/task"
)

func (a agentVerbs) ioCommand() *cli.Command {
	return &cli.Command{
		Name: "io", Usage: "run an MCP server, for an agent's program", Hidden: true,
		Description: "For Claude Code and Codex, which start `netsky io serve` beside an agent. It gives the model its tools, and gives\n" +
			"Claude Code the agent's mail.",
		Subcommands: []*cli.Command{{
			Name: "serve", Usage: "speak MCP on stdin and stdout",
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "s", Aliases: []string{"server"}, Value: "agent", Usage: "run this `SERVER`: agent, or imessage, the tools for your phone"},
				&cli.BoolFlag{Name: "tools-only", Usage: "leave the mailbox to another process"},
			},
			Action: a.ioServe,
		}},
		Action: a.needsSub,
	}
}

var errNoAgent = errors.New("AGENT_N is not set; only an agent's program starts this")

// ioServe runs the MCP server of one agent, as a child of its program.
func (a agentVerbs) ioServe(c *cli.Context) error {
	if c.NArg() > 0 {
		return usagef("io serve: takes no arguments; -s names the server")
	}
	server := c.String("server")
	if server != "agent" && server != "imessage" {
		return usagef("io serve: -s %q: must be agent or imessage", server)
	}
	self, err := a.self()
	if err != nil {
		return err
	}
	if !self.IsAgent() {
		return usagef("io serve: %w", errNoAgent)
	}
	if server == "imessage" {
		if err := a.may("io serve -s imessage"); err != nil {
			return err
		}
	}
	a.forgive()
	l, err := a.launcher()
	if err != nil {
		return err
	}
	in, ok := a.in.(io.ReadCloser)
	if !ok {
		in = io.NopCloser(a.in)
	}
	f := a.fleetOf(l)
	o := mcp.Options{
		Agent: self, Start: a.getenv("NETSKY_START"), Home: l.Home, Bus: l.Bus,
		Records: task.Shelf{Journal: l.Journal, Home: l.Home}, Tasks: fleet.Tasks{Fleet: f}, Members: fleet.Team{Fleet: f}, Checks: &fleet.Checks{Fleet: f}, In: in, Out: a.out, Version: Version, Log: a.logIO,
	}
	if server == "imessage" {
		o.Phone = bridge.Tools{Home: l.Home, Secrets: phoneVerbs(a).phone(l.Home).Secrets()}
		return mcp.Serve(c.Context, o)
	}
	if c.Bool("tools-only") {
		return mcp.Serve(c.Context, o)
	}
	return a.serveClaude(c.Context, l, o)
}

// logIO prints what went wrong with a server to stderr, which the runtime logs.
func (a agentVerbs) logIO(what string, err error) {
	if err != nil {
		what += ": " + err.Error()
	}
	a.warn("%s", what)
}
