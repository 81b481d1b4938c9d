package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
		ArgsUsage:   "ID TEXT",
		Description: "Sends TEXT to whoever sent the message ID to you. The first characters of an id do, six at least.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "file", Usage: "take the text from `FILE`; - is stdin"},
			&cli.BoolFlag{Name: "error", Usage: "say that it failed"},
		},
		Action: func(c *cli.Context) error {
			id := c.Args().First()
			text, err := a.textArg(c, 1, "reply: wants an id and one text, in quotes")
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
			e, err := a.received(c.Context, b, self, id, "")
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

var errNoMessage = errors.New("no message with that id has come to")

// received finds the message with that id in one's own mailbox. Two senders may
// have given theirs the same: then it is that of from, if there is such.
func (a *app) received(ctx context.Context, b *bus.Bus, self agent.ID, id string, from agent.ID) (envelope.Envelope, error) {
	list, err := b.Received(ctx, self, id)
	if err != nil {
		return envelope.Envelope{}, err
	}
	if i := slices.IndexFunc(list, func(e bus.Entry) bool { return e.Envelope.ID == id && e.Envelope.From == from }); i >= 0 {
		list = list[i : i+1]
	}
	switch {
	case len(list) == 1:
		return list[0].Envelope, nil
	case len(list) == 0:
		return envelope.Envelope{}, fmt.Errorf("%s: %w %s", id, errNoMessage, self)
	case list[0].Envelope.ID == id:
		var senders []string
		for _, e := range list {
			senders = append(senders, string(e.Envelope.From))
		}
		return envelope.Envelope{}, usagef("%s: %s each sent a message with that id; netsky channel send AGENT TEXT --kind reply --in-reply-to %s answers one of them",
			id, strings.Join(senders, " and "), id)
	}
	more := ""
	if len(list) == bus.MostReceived {
		more = " or more"
	}
	return envelope.Envelope{}, usagef("%s: %d%s messages begin so; give more of the id", id, len(list), more)
}
