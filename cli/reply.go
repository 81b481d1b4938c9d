package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
)

func (a *app) replyCommand() *cli.Command {
	return &cli.Command{
		Name:        "reply",
		Usage:       "answer a message",
		ArgsUsage:   "ID|AGENT TEXT",
		Description: "Sends TEXT to the sender of the message ID. The first six or more characters of an id are enough; AGENT stands for the\nlast message from it.",
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
			self, err := a.self()
			if err != nil {
				return err
			}
			b, err := a.bus()
			if err != nil {
				return err
			}
			e, err := a.replied(c.Context, b, self, id)
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

// replied returns the message that a reply answers: by its id, or the last one of an agent.
func (a *app) replied(ctx context.Context, b *bus.Bus, self agent.ID, word string) (envelope.Envelope, error) {
	e, err := bus.FindOne(ctx, b, self, word, "")
	from, unnamed := agent.ParseAgent(word)
	if err == nil || unnamed != nil || !errors.Is(err, bus.ErrNoMessage) {
		return e, err
	}
	if e, err = bus.FindLast(ctx, b, self, from); err == nil {
		a.warn("answering %s: %s", e.ID, envelope.Line(e.Text, 80))
	}
	return e, err
}
