package cli

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/cli/view"
	"netsky/home"
	"netsky/store"
)

func (a viewVerbs) logCommand() *cli.Command {
	return &cli.Command{
		Name:  "log",
		Args:  true,
		Usage: "print what has happened",
		Description: "Prints the newest entries of the records, oldest first: starts and ends, deaths, decisions, and reports of services.\n" +
			"The id in parentheses is a start, a message or another record; `netsky show ID` prints its history.\n" +
			"On the owner's host of a team, what the other hosts have told of their logs is among them, under addresses like agent3@build1 and\n" +
			"parts like watchdog@build1: the newest hundred of each host, and what happens from then on. `netsky --on HOST log` prints all.",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "n", Value: 40, Usage: "print the last `N`, at most 1000"},
			&cli.StringFlag{Name: "actor", Usage: "print only entries about `AGENT`"},
			&cli.StringFlag{Name: "cursor", Usage: "print older ones, from the `CURSOR` of an earlier --json"},
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "keep printing new entries, until Ctrl-C"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object; with --follow one per line"},
		},
		Action: a.log,
	}
}

func (a viewVerbs) log(c *cli.Context) error { return a.logOf(c, "log", "logs", "") }

// logOf prints the entries of a part of netsky, "" for all, as a verb does; field is the
// list's name in its JSON.
func (a viewVerbs) logOf(c *cli.Context, verb, field, part string) error {
	if c.NArg() > 0 {
		return usagef("%s: takes no arguments; `netsky show %[2]s` prints the history of %[2]s", verb, c.Args().First())
	}
	f := store.LogFilter{Part: part, Page: store.Page{Limit: c.Int("n"), Cursor: c.String("cursor")}}
	if f.Limit < 1 || f.Limit > 1000 {
		return usagef("%s: -n %d: must be 1 to 1000", verb, f.Limit)
	}
	if who := c.String("actor"); who != "" {
		id, err := agent.ParseArgAddress(who)
		if err != nil {
			return err
		}
		f.Actor = id
	}
	h, err := a.home()
	if err != nil {
		return err
	}
	if s, err := store.SpoolSize(h); err == nil && s.Files > 0 {
		a.warn("%d records wait in %s for the database; they are not shown", s.Files, tilde(a.app, h.Path(home.SpoolDir)))
	}
	ctx := c.Context
	db, err := a.records(ctx, h)
	if errors.Is(err, fs.ErrNotExist) {
		a.warn("no records yet: no agent was ever started here")
		return nil
	}
	if err != nil {
		return err
	}
	defer db.Close()
	list, err := db.Logs(ctx, f)
	if err != nil {
		return err
	}
	slices.Reverse(list.Items)
	if c.Bool("json") && !c.Bool("follow") {
		return a.writeJSON(map[string]any{field: append([]store.Log{}, list.Items...), "cursor": list.Cursor})
	}
	switch host := f.Actor.Host(); {
	case len(list.Items) > 0 || c.Bool("follow"):
	case host != "":
		a.warn("none told of %s; all is on record there: `netsky --on %s %s --actor %s`", f.Actor, host, verb, f.Actor.Local())
	default:
		a.warn("none yet")
	}
	// What was noticed late is recorded late.
	byTime(list.Items)
	wide := columns{part: 9, actor: 14}
	last, err := a.printLogs(&wide, list.Items, 0, c.Bool("json"))
	if err != nil || !c.Bool("follow") {
		return err
	}
	if last == 0 {
		if last, err = db.LastLog(ctx); err != nil {
			return err
		}
	}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		f.Forward, f.After, f.Cursor = true, last, ""
		list, err := db.Logs(ctx, f)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if last, err = a.printLogs(&wide, list.Items, last, c.Bool("json")); err != nil {
			return err
		}
	}
}

func byTime(list []store.Log) {
	slices.SortStableFunc(list, func(a, b store.Log) int { return cmp.Compare(a.Time, b.Time) })
}

// columns are as wide as the widest that was printed: those of another host's are longer.
type columns struct{ part, actor int }

func (a viewVerbs) printLogs(wide *columns, list []store.Log, last int64, asJSON bool) (int64, error) {
	for _, e := range list {
		wide.part, wide.actor = max(wide.part, len(e.Part)), max(wide.actor, len(e.Actor))
	}
	for _, e := range list {
		last = max(last, e.ID)
		if asJSON {
			if err := a.writeJSONLine(e); err != nil {
				return last, err
			}
			continue
		}
		level := ""
		if e.Level != store.LevelInfo {
			level = strings.ToUpper(e.Level) + " "
		}
		a.print("%s  %-*s %-*s %s%s%s", view.Stamp(e.Time), wide.part, e.Part, wide.actor, e.Actor, level, e.Text, view.About(e.About, ""))
	}
	return last, a.broken
}
