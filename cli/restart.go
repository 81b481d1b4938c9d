package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/cli/view"
	"netsky/daemon"
	"netsky/fleet/plan"
	"netsky/internal/advice"
	"netsky/internal/execx"
	"netsky/internal/words"
	"netsky/spawn"
	"netsky/watch"
	"netsky/watch/restart"
)

func (a *app) restartCommand() *cli.Command {
	return &cli.Command{
		Name: "restart", Usage: "end agents and start them again on their conversations", ArgsUsage: "[AGENT…]",
		Description: "Without names: all agents that are up. Everything that could keep them from starting is checked first; if anything\n" +
			"does, nothing is ended. Then all are asked to finish their turns, as `netsky down` does, and are started together, agent0\n" +
			"first: the others answer to it. The daemon does that, even if this command or its terminal ends. The daemon itself keeps\n" +
			"its build; `netsky daemon stop`, then `netsky up`, replaces it.\n" +
			"A restart sends nothing to a model; --handoff does, as it is a message to each of the agents.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "handoff", Usage: "send each agent this `FILE` (- is stdin) before its new start"},
			&cli.BoolFlag{Name: "force", Usage: "cut off running turns"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object at the end"},
		},
		Action: func(c *cli.Context) error {
			if err := a.may("restart"); err != nil {
				return err
			}
			ids, err := agentArgs(c)
			if err != nil {
				return err
			}
			self, err := a.self()
			if err != nil {
				return err
			}
			r := restart.Request{By: self, Force: c.Bool("force")}
			if !self.IsAgent() {
				r.Environ = execx.Inherited(a.environ)
			}
			if c.IsSet("handoff") {
				if r.Handoff, err = a.textFile("--handoff", c.String("handoff")); err != nil {
					return err
				}
				if words.Blank(r.Handoff) || len(r.Handoff) > restart.MaxHandoff {
					return usagef("restart: a handoff has 1 to %d bytes of text; this one has %d", restart.MaxHandoff, len(r.Handoff))
				}
			}
			l, err := a.launcher()
			if err != nil {
				return err
			}
			a.tellNumber(c.Context, l, c.Args().Slice(), ids)
			return a.restart(c.Context, l, ids, r, c.Bool("json"))
		},
	}
}

func (a *app) restart(ctx context.Context, l *spawn.Launcher, ids []agent.ID, r restart.Request, asJSON bool) error {
	f := a.fleetOf(l)
	runtimes := f.Planner().Runtimes()
	err := restart.Check(ctx, restart.Options{
		Launcher: l, Plan: f.PlanAgain,
		Conversation: func(id agent.ID) (string, error) { return plan.Conversation(l.Home, id) },
		Barred:       func(id agent.ID) string { return watch.Barred(l.Home, runtimes, id) },
	}, ids, &r)
	if err == nil {
		err = f.WantDaemon(ctx)
	}
	if err == nil {
		err = restart.Submit(l.Home, &r)
	}
	if err != nil {
		return fmt.Errorf("nothing was ended: %w", err)
	}
	if err := daemon.Wake(ctx, l.Home); err != nil {
		a.warn("%v", err)
	}
	if r.Names(r.By) {
		return exitError{exitPartly, advice.With(fmt.Errorf("%s is restarted once this turn has ended, and cut off after a minute: end it now", r.By), "`netsky log` then shows how it went")}
	}
	r, err = restart.Follow(ctx, l.Home, r.ID, func(line string) {
		if !asJSON {
			a.print("%s", line)
		}
	})
	if asJSON {
		if jerr := a.writeJSON(r.View()); jerr != nil {
			return jerr
		}
	}
	for _, note := range view.DaemonOf(ctx, l.Home).Notes(Version) {
		a.warn("%s", note) // it is not restarted
	}
	switch {
	case errors.Is(err, context.Canceled):
		return exitError{128 + int(endedBy(ctx)), advice.With(errors.New("interrupted: the daemon continues the restart"), "`netsky log` shows how it went")}
	case errors.Is(err, restart.ErrPartly):
		return exitError{exitPartly, err}
	}
	return err
}
