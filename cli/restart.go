package cli

import (
	"errors"

	"github.com/urfave/cli/v2"

	"netsky/cli/view"
	"netsky/fleet"
	"netsky/watch/restart"
)

func (a fleetVerbs) restartCommand() *cli.Command {
	return &cli.Command{
		Name: "restart", Usage: "end agents and start them again on their conversations", ArgsUsage: "[AGENT…]",
		Description: "Without names: all agents that are up. Everything that could keep them from starting is checked first; if anything\n" +
			"does, nothing is ended. Then all are asked to finish their turns, as `netsky down` does, and are started together, agent0\n" +
			"first: the others answer to it. The daemon does that, even if this command or its terminal ends. The daemon itself keeps\n" +
			"its build; `netsky daemon restart` renews it. Agents of another host of your team are named by their addresses, as agent3@build1.\n" +
			"A restart sends nothing to a model; --handoff does, as it is a message to each of the agents.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "handoff", Usage: "send each agent this `FILE` (- is stdin) before its new start"},
			&cli.BoolFlag{Name: "force", Usage: "cut off running turns"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object at the end"},
		},
		Action: a.restart,
	}
}

func (a fleetVerbs) restart(c *cli.Context) error {
	host, ids, err := aimed(a).agentsAt(c)
	if err != nil {
		return err
	}
	r := fleet.RestartRequest{Agents: ids, Force: c.Bool("force")}
	if c.IsSet("handoff") {
		text, err := a.textFile("--handoff", c.String("handoff"))
		if err != nil {
			return err
		}
		r.Handoff = &text
	}
	if host != "" {
		return there[any](a.app, c, host, "restart", r, nil)
	}
	l, err := a.launcher()
	if err != nil {
		return err
	}
	a.tellNumber(c.Context, l, c.Args().Slice(), ids)
	f := a.fleetOf(l)
	f.UI = ui{a.app, &view.Down{Printer: a.printer(c.Bool("json"))}}
	done, err := f.Restart(c.Context, r)
	if done.ID == "" {
		return err
	}
	if c.Bool("json") {
		if jerr := a.writeJSON(done); jerr != nil {
			return jerr
		}
	}
	for _, note := range view.DaemonOf(c.Context, l.Home).Notes(Version) {
		a.warn("%s", note) // it is not restarted
	}
	if errors.Is(err, restart.ErrInterrupted) {
		err = exitError{128 + int(endedBy(c.Context)), err}
	}
	return err
}
