package cli

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/urfave/cli/v2"

	"netsky/cli/view"
	"netsky/internal/words"
	"netsky/store"
)

func (a viewVerbs) findCommand() *cli.Command {
	return &cli.Command{
		Name:      "find",
		Usage:     "search messages, tasks and notes",
		ArgsUsage: "TEXT",
		Description: "Lists the messages, tasks and notes that contain every word of TEXT in their text, their id or the name of their file,\n" +
			"newest first. Case is ignored for A to Z only. The exit status is 1 if nothing is found. `netsky show ID` prints one in\n" +
			"full.",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "n", Value: 20, Usage: "list at most `N`, up to 1000"},
			&cli.StringFlag{Name: "cursor", Usage: "list older ones, from the `CURSOR` of an earlier --json"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
		},
		Action: a.find,
	}
}

func (a viewVerbs) find(c *cli.Context) error {
	text := strings.Join(c.Args().Slice(), " ")
	if strings.TrimSpace(text) == "" {
		return usagef("find: needs the words to search for: netsky find \"release notes\"")
	}
	n := c.Int("n")
	if n < 1 || n > 1000 {
		return usagef("find: -n %d: must be 1 to 1000", n)
	}
	h, err := a.home()
	if err != nil {
		return err
	}
	db, err := a.freshRecords(c.Context, h)
	if errors.Is(err, fs.ErrNotExist) {
		a.warn("no records yet: no agent was ever started here")
		return exitError{exitFailed, errTold}
	}
	if err != nil {
		return err
	}
	defer db.Close()
	list, err := db.Find(c.Context, text, store.Page{Limit: n, Cursor: c.String("cursor")})
	if errors.Is(err, store.ErrSearch) {
		return usagef("find: %v", err)
	}
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return a.writeJSON(map[string]any{"found": list.Items, "cursor": list.Cursor})
	}
	for _, f := range list.Items {
		for _, line := range view.FoundLines(f) {
			a.print("%s", line)
		}
	}
	switch {
	case len(list.Items) == 0:
		a.warn("no record contains %q", words.Brief(text, 60))
		return exitError{exitFailed, errTold}
	case list.Cursor != "":
		a.warn("there is more: -n %d shows up to %d", min(10*n, 1000), min(10*n, 1000))
	}
	return nil
}
