package cli

import (
	"github.com/urfave/cli/v2"

	"netsky/fleet"
)

func (a mailVerbs) cancelCommand() *cli.Command {
	return &cli.Command{
		Name: "cancel", Usage: "cancel a message that no agent is working on yet", ArgsUsage: "ID",
		Description: "A message that waits in an inbox is taken back. One that an agent holds, because its model can't answer, is given up,\n" +
			"and its sender gets an error. What an agent is working on ends with `netsky interrupt AGENT`.\n" +
			"Cancelling it again says so, with exit code 0. The first six or more characters of an id are enough.",
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usagef("cancel: needs the id of a message; `netsky inbox --sent` lists those you have sent")
			}
			f, err := a.fleet()
			if err != nil {
				return err
			}
			r, err := fleet.Mail{Fleet: f}.Cancel(c.Context, fleet.CancelRequest{Message: c.Args().First()})
			if err == nil {
				a.print("%s: %s", r.Message, r.How)
			}
			return err
		},
	}
}
