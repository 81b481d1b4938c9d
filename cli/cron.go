package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/daemon"
	"netsky/daemon/schedule"
	"netsky/home"
	"netsky/internal/words"
	"netsky/store"
)

const cronDescription = "Each run is a message to the agent, as if you had sent it, and costs what a turn costs; its answer is in `netsky inbox`.\n" +
	"While the agent has not finished one, the next is skipped. Nothing is sent to an agent that is down. If the daemon was\n" +
	"not running, one run is made up for, and `netsky log` says how many were missed. Only the owner and agent0 can add one."

var limitFlags = []cli.Flag{
	&cli.IntFlag{Name: "times", Usage: "end after `N` messages", DefaultText: "no limit"},
	&cli.StringFlag{Name: "until", Usage: "end at `TIME`: 18:00, \"2026-12-24 18:00\", or a duration such as 8h"},
}

func (a *app) cronCommand() *cli.Command {
	return &cli.Command{
		Name: "cron", Usage: "send agents messages at set times", Action: a.needsSub, Description: cronDescription,
		Subcommands: []*cli.Command{
			{
				Name: "add", Usage: "send a text to an agent at set times", ArgsUsage: "WHEN ADDR TEXT", Flags: limitFlags,
				Description: "WHEN is one argument, in quotes: five fields (minute hour day month weekday, in local time, as in cron), @hourly,\n" +
					"@daily, @weekly, @monthly, or \"every 30m\". For example: netsky cron add \"*/15 9-17 * * 1-5\" agent0 \"check the build\"\n\n" + cronDescription,
				Action: func(c *cli.Context) error {
					return a.addSchedule(c, 1, schedule.Wish{Spec: c.Args().Get(0)}, "a schedule, an agent and a text, each in quotes: netsky cron add \"0 9 * * 1-5\" agent0 \"check the build\"")
				},
			},
			{
				Name: "ls", Usage: "list the schedules, with their next and last runs", Action: a.listSchedules,
				Flags: []cli.Flag{
					&cli.BoolFlag{Name: "all", Usage: "also list those that were removed or have finished"},
					&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
				},
			},
			{Name: "rm", Usage: "remove schedules", ArgsUsage: "ID…", Action: a.removeSchedules},
		},
	}
}

func (a *app) loopCommand() *cli.Command {
	return &cli.Command{
		Name: "loop", Usage: "send an agent a message now, and again and again", ArgsUsage: "ADDR EVERY TEXT", Flags: limitFlags,
		Description: "EVERY is an interval of at least 1m, such as 30m or 6h. `netsky cron ls` lists it, `netsky cron rm ID` ends it.\n\n" + cronDescription,
		Action: func(c *cli.Context) error {
			return a.addSchedule(c, 0, schedule.Wish{Spec: "every " + strings.TrimPrefix(c.Args().Get(1), "every "), AtOnce: true}, "an agent, an interval and a text, in quotes: netsky loop agent0 30m \"how is it going?\"")
		},
	}
}

// book returns the schedules, for one who may change them.
func (a *app) book(c *cli.Context, h home.Dir) schedule.Book {
	return schedule.Book{
		Home: h, Records: func() (*store.DB, error) { return a.records(c.Context, h) },
		Idle: func() string {
			switch p, err := daemon.Ping(c.Context, h); {
			case err != nil:
				return "the daemon, which sends it, is not running: nothing is sent until `netsky up`"
			case p.Schema < store.Schema():
				return "the daemon, which sends it, is of an older netsky: nothing is sent until `netsky daemon stop`, then `netsky up`"
			}
			return ""
		},
	}
}

// addSchedule adds what is asked for; the agent is argument number who.
func (a *app) addSchedule(c *cli.Context, who int, w schedule.Wish, usage string) (err error) {
	verb := verbOf(c)
	if w.Who, err = a.self(); err != nil {
		return err
	}
	if err := schedule.May(w.Who); err != nil {
		return usagef("%s: %w", verb, err)
	}
	if w.Text, err = a.textArg(c, 2, verb+": needs "+usage); err != nil {
		return err
	}
	if w.Target, err = agent.ParseAgent(c.Args().Get(who)); err != nil {
		return err
	}
	if w.Times, w.Until = c.Int("times"), c.String("until"); c.IsSet("times") && w.Times < 1 {
		return usagef("%s: --times %d: must be above 0", verb, w.Times)
	}
	h, err := a.madeHome()
	if err != nil {
		return err
	}
	s, err := a.book(c, h).Add(c.Context, w)
	if errors.Is(err, schedule.ErrWish) {
		return usagef("%s: %w", verb, err)
	}
	if err != nil && !errors.Is(err, store.ErrSpooled) {
		return err
	}
	a.print("%s: sends %s this text, %s, first %s; `netsky cron rm %s` removes it", s.ID, s.Target, schedule.Words(s.Schedule), s.Begins, s.ID)
	for _, text := range s.Warnings {
		a.warn("%s", text)
	}
	if err != nil {
		return exitError{exitPartly, err}
	}
	if err := daemon.Wake(c.Context, h); err != nil {
		a.warn("%v", err)
	}
	return nil
}

func (a *app) listSchedules(c *cli.Context) error {
	h, err := a.home()
	if err != nil {
		return err
	}
	list, warning, err := a.book(c, h).List(c.Context, c.Bool("all"))
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return a.writeJSON(map[string]any{"schedules": list})
	}
	for _, v := range list {
		a.print("%s  %-14s %s  %s%s", v.ID, v.Target, v.Line(), words.Brief(v.Text, 60), words.Note(v.Warning))
	}
	if len(list) == 0 {
		warning = "no schedules; `netsky cron add` and `netsky loop` add one"
	}
	if warning != "" {
		a.warn("%s", warning)
	}
	return nil
}

func (a *app) removeSchedules(c *cli.Context) error {
	self, err := a.self()
	if err != nil {
		return err
	}
	if err := schedule.May(self); err != nil {
		return usagef("cron rm: %w", err)
	}
	if c.NArg() == 0 {
		return usagef("cron rm: needs an id; `netsky cron ls` lists them")
	}
	h, err := a.home()
	if err != nil {
		return err
	}
	done, err := a.book(c, h).Remove(c.Context, self, c.Args().Slice())
	for _, id := range done {
		a.print("%s: removed", id)
	}
	if err != nil && len(done) > 0 {
		return exitError{exitPartly, fmt.Errorf("cron rm: %w", err)}
	}
	return err
}
