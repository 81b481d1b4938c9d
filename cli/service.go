package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"netsky/config"
	"netsky/fleet"
	"netsky/fleet/service"
	"netsky/home"
)

func (a daemonVerbs) serviceCommand() *cli.Command {
	dry := &cli.BoolFlag{Name: "dry-run", Usage: "print the files and commands, and change nothing"}
	asJSON := &cli.BoolFlag{Name: "json", Usage: "print one JSON object"}
	return &cli.Command{
		Name: "service", Usage: "bring up what was up after a reboot", Action: a.needsSub,
		Description: "Registers this home with systemd (on macOS: launchd), for you alone: after a reboot the agents that you had up are\n" +
			"started with their conversations, and once a minute the daemon is started if it should be running and is gone. What\n" +
			"you have ended stays down. Starting agents sends nothing to a model.",
		Subcommands: []*cli.Command{
			{Name: "install", Usage: "write the unit files and enable them; it starts no agent", Flags: []cli.Flag{dry, asJSON}, Action: func(c *cli.Context) error {
				return a.changeService(c, service.Install)
			}},
			{Name: "uninstall", Usage: "disable and remove them; running agents stay", Flags: []cli.Flag{asJSON}, Action: func(c *cli.Context) error {
				return a.changeService(c, service.Uninstall)
			}},
			{Name: "status", Usage: "report whether it is installed, enabled and active", Flags: []cli.Flag{asJSON}, Action: a.serviceStatus},
			{
				Name: "run", Usage: "bring up what is wanted up", Hidden: true, Action: a.serviceRun,
				Description: "For the unit that `netsky service install` writes. By hand: `netsky up`.",
			},
		},
	}
}

func (a daemonVerbs) serviceOf(h home.Dir) service.Options {
	own, _ := fleet.Binary() // "" is refused where it matters
	return service.For(h, own, a.environ)
}

func (a daemonVerbs) changeService(c *cli.Context, do func(context.Context, service.Options) (service.Result, error)) error {
	if err := a.may("service " + c.Command.Name); err != nil {
		return err
	}
	h, err := a.home()
	if err != nil {
		return err
	}
	if c.Bool("dry-run") {
		do = func(_ context.Context, o service.Options) (service.Result, error) { return service.Plan(o) }
	}
	r, err := do(c.Context, a.serviceOf(h))
	if err != nil && !errors.Is(err, service.ErrManager) {
		return err
	}
	if c.Bool("json") {
		if err := a.writeJSON(r); err != nil {
			return err
		}
	} else {
		a.print("%s", strings.Join(r.Lines(c.Bool("dry-run")), "\n"))
	}
	if err != nil {
		a.warn("%v", err)
		for _, line := range r.Failed {
			fmt.Fprintln(a.err, "once it runs (it does when you log in): "+line)
		}
		return exitError{exitPartly, errTold}
	}
	return nil
}

func (a daemonVerbs) serviceStatus(c *cli.Context) error {
	h, err := a.home()
	if err != nil {
		return err
	}
	s := service.Inspect(c.Context, a.serviceOf(h))
	if c.Bool("json") {
		return a.writeJSON(s)
	}
	a.print("%s", s)
	return nil
}

// serviceRun is what the unit runs.
func (a daemonVerbs) serviceRun(c *cli.Context) error {
	if err := a.may("service run"); err != nil {
		return err
	}
	a.bears = config.Ignored // as the watchdog, which starts agents again
	l, err := a.launcher()
	if err != nil {
		return err
	}
	return fleet.Revival{Fleet: a.fleetOf(l)}.Revive(c.Context, a.print)
}
