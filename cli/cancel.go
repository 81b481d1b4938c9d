package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"netsky/fleet"
	"netsky/home"
	"netsky/store"
)

func (a *app) cancelCommand() *cli.Command {
	return &cli.Command{
		Name: "cancel", Usage: "cancel a message that no agent is working on yet", ArgsUsage: "ID",
		Description: "A message that waits in an inbox is taken back. One that an agent holds, because its model can't answer, is given up,\n" +
			"and its sender gets an error. What an agent is working on ends with `netsky interrupt AGENT`.\n" +
			"Cancelling it again says so, with exit code 0. The first six or more characters of an id are enough.",
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
			id, err := a.wholeID(c.Context, l.Home, c.Args().First())
			if err != nil {
				return err
			}
			how, err := fleet.Cancel(c.Context, l, self, id)
			if err != nil {
				return err
			}
			a.print("%s", fmt.Sprintf("%s: %s", id, how))
			return nil
		},
	}
}

// wholeID returns the id of the message that begins so, if the records have one; else the word itself.
func (a *app) wholeID(ctx context.Context, h home.Dir, word string) (string, error) {
	db, err := a.freshRecords(ctx, h)
	if err != nil {
		return word, nil // the mailboxes know whole ids
	}
	defer db.Close()
	s, err := db.Resolve(ctx, word)
	switch {
	case errors.Is(err, store.ErrAmbiguous):
		return "", exitError{exitUsage, err}
	case err != nil || s.Kind != store.SubjectMessage:
		return word, nil
	}
	return s.ID, nil
}
