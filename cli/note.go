package cli

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/bus"
	"netsky/cli/spell"
	"netsky/cli/view"
	"netsky/internal/advice"
	"netsky/store"
	"netsky/work/task"
)

func (a mailVerbs) noteCommand() *cli.Command {
	return &cli.Command{
		Name: "note", Usage: "record something about a task, a message or an agent", Action: a.needsSub,
		Subcommands: []*cli.Command{
			{
				Name: "add", Usage: "record a note", ArgsUsage: "ABOUT TEXT", Action: a.noteAdd,
				Description: "ABOUT is an agent, or the id of a task, a message or anything else that is on record. Nobody is told.",
				Flags:       []cli.Flag{&cli.StringFlag{Name: "file", Usage: "read the text from `FILE`; - is stdin"}},
			},
			{
				Name: "ls", Usage: "list notes, the oldest first", ArgsUsage: "[ABOUT]", Action: a.noteList,
				Flags: []cli.Flag{
					&cli.IntFlag{Name: "limit", Value: 40, Usage: "list the last `N`, at most 1000"},
					&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
				},
			},
		},
	}
}

func (a mailVerbs) noteAdd(c *cli.Context) error {
	text, err := a.textArg(c, 1, "note add: needs what it is about and one text, in quotes")
	if err != nil {
		return err
	}
	t, err := taskVerbs(a).tasks()
	if err != nil {
		return err
	}
	if db, err := a.freshRecords(c.Context, t.Home); err == nil { // what has just arrived is on record as well
		db.Close()
	}
	about, err := t.Note(c.Context, task.Note{About: c.Args().First(), Text: text})
	if errors.Is(err, task.ErrNothing) {
		return advice.With(usagef("note add: %w%s", err, meantAgent(t.Launcher.Bus, c.Args().First())), "`netsky find TEXT` finds the ids of messages, tasks and notes, `netsky status` lists the agents")
	}
	if err != nil && !errors.Is(err, store.ErrSpooled) {
		return taskVerbs(a).taskErr("note add", err)
	}
	a.print("note on %s", about)
	return taskVerbs(a).taskErr("note add", err)
}

// meantAgent asks whether a word that names nothing was meant to be an agent that has a mailbox.
func meantAgent(b *bus.Bus, word string) string {
	list, _ := b.Mailboxes() // without it nothing is asked
	var names []string
	for _, id := range list {
		names = append(names, string(id))
	}
	if best := spell.Nearest(word, names); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return ""
}

func (a mailVerbs) noteList(c *cli.Context) error {
	f := store.NoteFilter{About: c.Args().First(), Page: store.Page{Limit: c.Int("limit")}}
	switch {
	case c.NArg() > 1:
		return usagef("note ls: takes one id at most")
	case f.Limit < 1 || f.Limit > 1000:
		return usagef("note ls: --limit %d: must be 1 to 1000", f.Limit)
	}
	l, err := a.launcher()
	if err != nil {
		return err
	}
	db, err := a.records(c.Context, l.Home)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	list := store.List[store.Note]{Items: []store.Note{}}
	if err == nil {
		defer db.Close()
		if id, perr := agent.ParseArg(f.About); perr == nil {
			f.About = string(id)
		} else if s, ferr := db.Resolve(c.Context, f.About); ferr == nil {
			f.About = s.ID
		}
		if list, err = db.Notes(c.Context, f); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		return a.writeJSON(map[string]any{"notes": list.Items})
	}
	for i := len(list.Items) - 1; i >= 0; i-- {
		for _, line := range view.NoteLines(list.Items[i]) {
			a.print("%s", line)
		}
	}
	if len(list.Items) == 0 {
		a.warn("no notes")
	}
	return nil
}
