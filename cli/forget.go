package cli

import (
	"github.com/urfave/cli/v2"

	"netsky/fleet"
)

func (a fleetVerbs) forgetCommand() *cli.Command {
	return &cli.Command{
		Name:      "forget",
		Usage:     "remove an agent that is down from status",
		ArgsUsage: "[AGENT…]",
		Description: "Removes the agent's line from `netsky status`, and nothing else: its mail, records, prompt and workspace stay, and\n" +
			"unread mail is named. The line comes back when the agent is started or a new message waits for it.\n\n" +
			"If the netsky process that watched over an agent was killed, the agent may have left a process that netsky can't find:\n" +
			"`down --verify` and `uninstall --purge` then report \"not proved\" until no process is left that could be its own, the\n" +
			"machine is restarted, or you confirm here that you have looked. For such an agent, forget also lists the processes that may be\n" +
			"its own, and asks; if you say yes, it removes that note and logs your answer. It ends no process. With --unproved it does only\n" +
			"that: for the agents you name, or else for all that have such a note.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "unproved", Usage: "only remove the note that something of a killed agent may still run"},
			&cli.BoolFlag{Name: "all", Usage: "list also the processes that show no sign of netsky"},
			&cli.BoolFlag{Name: "yes", Usage: "do not ask; you have looked, and nothing of it is left"},
		},
		Action: a.forget,
	}
}

func (a fleetVerbs) forget(c *cli.Context) error {
	ids, err := agentArgs(c)
	if err != nil {
		return err
	}
	f, err := a.fleetFor(ui{a.app, lines(func(text string) { a.print("%s", text) })})
	if err != nil {
		return err
	}
	_, err = f.Forget(c.Context, fleet.ForgetRequest{Agents: ids, Unproved: c.Bool("unproved"), All: c.Bool("all"), Yes: c.Bool("yes")})
	return err
}
