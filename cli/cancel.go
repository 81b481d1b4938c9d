package cli

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"netsky/spawn/interrupt"
)

func (a *app) cancelCommand() *cli.Command {
	return &cli.Command{
		Name: "cancel", Usage: "cancel a message that no agent is working on yet", ArgsUsage: "ID",
		Description: "A message that waits in an inbox is taken back. One that an agent holds, because its vendor does not serve it, is given up,\n" +
			"and its sender gets an error. What an agent is working on ends with `netsky interrupt AGENT`.\n" +
			"Cancelling it again says so, with exit code 0.",
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usagef("cancel: needs the id of a message; `netsky inbox --sent` lists those you have sent")
			}
			self, err := a.self()
			if err != nil {
				return err
			}
			l, err := a.launcher()
			if err != nil {
				return err
			}
			id := c.Args().First()
			how, err := interrupt.Cancel(c.Context, l, self, id)
			if err != nil {
				return err
			}
			a.print("%s", fmt.Sprintf("%s: %s", id, how))
			return nil
		},
	}
}
