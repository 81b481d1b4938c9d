package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/bus"
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
			e, err := a.received(c.Context, b, self, id)
			if err != nil {
				return err
			}
			kind := bus.KindReply
			if c.Bool("error") {
				kind = bus.KindError
			}
			r, err := b.Send(c.Context, bus.Envelope{
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

// received finds the message with that id in one's own mailbox.
func (a *app) received(ctx context.Context, b *bus.Bus, self agent.ID, id string) (bus.Envelope, error) {
	var found []bus.Envelope
	for _, p := range filing() {
		list, err := b.List(self, p, 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return bus.Envelope{}, err
		}
		for _, e := range list {
			if e.Err != nil {
				continue
			}
			if e.Envelope.ID == id {
				return e.Envelope, nil
			}
			if len(id) >= 6 && strings.HasPrefix(e.Envelope.ID, id) &&
				!slices.ContainsFunc(found, func(f bus.Envelope) bool { return f.ID == e.Envelope.ID }) {
				found = append(found, e.Envelope)
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return bus.Envelope{}, fmt.Errorf("%s: %w %s", id, errNoMessage, self)
	}
	return bus.Envelope{}, usagef("%s: %d messages begin so; give more of the id", id, len(found))
}
