package cli

import (
	"github.com/urfave/cli/v2"

	"netsky/fleet"
)

func (a mailVerbs) replyCommand() *cli.Command {
	return &cli.Command{
		Name:        "reply",
		Usage:       "answer a message",
		ArgsUsage:   "ID|AGENT TEXT",
		Description: "Sends TEXT to the sender of the message ID. The first six or more characters of an id are enough; AGENT stands for the\nlast message from it. If that was itself a reply, yours is the next message of the thread, and the agent answers it.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "file", Usage: "read the text from `FILE`; - is stdin"},
			&cli.BoolFlag{Name: "error", Usage: "answer with an error"},
		},
		Action: func(c *cli.Context) error {
			id := c.Args().First()
			text, err := a.textArg(c, 1, "reply: needs an id, or an agent, and one text, in quotes")
			if err != nil {
				return err
			}
			f, err := a.fleet()
			if err != nil {
				return err
			}
			r, err := fleet.Mail{Fleet: f}.Reply(c.Context, fleet.ReplyRequest{Message: id, Text: text, Error: c.Bool("error")})
			if err != nil {
				return err
			}
			a.print("%s", r.ID)
			return nil
		},
	}
}
