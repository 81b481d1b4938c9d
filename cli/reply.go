package cli

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/bus/envelope"
	"netsky/bus/lookup"
)

func (a *app) replyCommand() *cli.Command {
	return &cli.Command{
		Name:        "reply",
		Usage:       "answer a message",
		ArgsUsage:   "ID TEXT",
		Description: "Sends TEXT to the sender of the message ID. The first six or more characters of an id are enough.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "file", Usage: "read the text from `FILE`; - is stdin"},
			&cli.BoolFlag{Name: "error", Usage: "answer with an error"},
		},
		Action: func(c *cli.Context) error {
			id := c.Args().First()
			text, err := a.textArg(c, 1, "reply: needs an id and one text, in quotes")
			if err != nil {
				return err
			}
			self, err := a.self()
			if err != nil {
				return err
			}
			b, err := a.bus()
			if err != nil {
				return err
			}
			e, err := lookup.One(c.Context, b, self, id, "")
			if err != nil {
				return err
			}
			kind := envelope.KindReply
			if c.Bool("error") {
				kind = envelope.KindError
			}
			r, err := b.Send(c.Context, envelope.Envelope{
				From: self, To: e.From, Kind: kind, Text: text, InReplyTo: e.ID, Thread: e.Thread,
				Hops: e.Hops + 1, Via: "cli", Time: time.Now(),
			})
			if err != nil {
				return fmt.Errorf("not sent: %w", err)
			}
			a.print("%s", r.ID)
			return nil
		},
	}
}
