package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/cli/console"
	"netsky/daemon"
	"netsky/daemon/schedule"
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
					text, err := a.textArg(c, 2, "cron add: needs a schedule, an agent and a text, each in quotes: netsky cron add \"0 9 * * 1-5\" agent0 \"check the build\"")
					if err != nil {
						return err
					}
					return a.addSchedule(c, schedule.Wish{Spec: c.Args().Get(0), Text: text}, c.Args().Get(1))
				},
			},
			{
				Name: "ls", Usage: "list the schedules, with their next and last runs",
				Flags: []cli.Flag{
					&cli.BoolFlag{Name: "all", Usage: "also list those that were removed or have finished"},
					&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
				},
				Action: a.listSchedules,
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
			text, err := a.textArg(c, 2, "loop: needs an agent, an interval and a text, in quotes: netsky loop agent0 30m \"how is it going?\"")
			if err != nil {
				return err
			}
			if _, err := schedule.Every(c.Args().Get(1)); err != nil {
				return usagef("loop: %w", err)
			}
			return a.addSchedule(c, schedule.Wish{Spec: "every " + c.Args().Get(1), Text: text, AtOnce: true}, c.Args().Get(0))
		},
	}
}

// maySchedule returns who asks, if they may.
func (a *app) maySchedule(verb string) (agent.ID, error) {
	self, err := a.self()
	if err == nil && self != agent.Owner && self != agent.Root {
		err = usagef("%s: only for the owner and agent0 (this is %s); ask agent0 to do it", verb, self)
	}
	return self, err
}

func (a *app) addSchedule(c *cli.Context, w schedule.Wish, addr string) (err error) {
	verb := strings.TrimPrefix(c.Command.HelpName, "netsky ")
	if w.Who, err = a.maySchedule(verb); err != nil {
		return err
	}
	if w.Target, err = agent.ParseAgent(addr); err != nil {
		return err
	}
	if w.Times, w.Until = c.Int("times"), c.String("until"); c.IsSet("times") && w.Times < 1 {
		return usagef("%s: --times %d: must be above 0", verb, w.Times)
	}
	h, err := a.madeHome()
	if err != nil {
		return err
	}
	var others []store.Schedule
	if db, err := a.records(c.Context, h); err == nil {
		others, err = db.Schedules(c.Context, false)
		if db.Close(); err != nil {
			return err
		}
	} // else they are counted when the daemon loads it
	s, first, err := schedule.Plan(w, schedule.Now(), others)
	if err != nil {
		return usagef("%s: %w", verb, err)
	}
	j := store.NewJournal(h)
	defer j.Close()
	err = j.Record(c.Context, store.AddSchedule(s), store.AddLog{Part: "cron", Actor: s.Target, About: s.ID, Text: fmt.Sprintf("%s added %s: %s to %s: %s", w.Who, s.ID, s.Spec, s.Target, console.Brief(s.Text, 100))})
	if err != nil && !errors.Is(err, store.ErrSpooled) {
		return err
	}
	begins := first.Format("Mon 2006-01-02 15:04")
	if w.AtOnce {
		begins = "now"
	}
	a.print("%s: sends %s this text, %s, first %s; `netsky cron rm %s` removes it", s.ID, s.Target, schedule.Words(s), begins, s.ID)
	if err != nil {
		return exitError{exitPartly, fmt.Errorf("%s begins once the records can be written: %w", s.ID, err)}
	}
	if d, err := h.LoadDesired(string(s.Target)); err != nil || !d.Up {
		a.warn("%s is down: nothing is sent until `netsky up %s`", s.Target, s.Target)
	}
	if _, err := daemon.Ping(c.Context, h); err != nil {
		a.warn("the daemon, which sends it, is not running: nothing is sent until `netsky up`")
		return nil
	}
	return daemon.Wake(c.Context, h)
}

func (a *app) listSchedules(c *cli.Context) error {
	h, err := a.home()
	if err != nil {
		return err
	}
	var list []store.Schedule
	db, err := a.records(c.Context, h)
	if err == nil {
		defer db.Close()
		list, err = db.Schedules(c.Context, c.Bool("all"))
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return err
	}
	now := schedule.Now()
	views := schedule.Views(h, list, now)
	if c.Bool("json") {
		return a.writeJSON(map[string]any{"schedules": views})
	}
	if len(views) == 0 {
		a.warn("no schedules; `netsky cron add` and `netsky loop` add one")
	}
	for _, v := range views {
		a.print("%s  %-14s %s  %s%s", v.ID, v.Target, v.Line(now), console.Brief(v.Text, 60), console.Note(v.Warning))
	}
	if len(list) > 0 && len(list) != countEnded(list) {
		if _, err := daemon.Ping(c.Context, h); err != nil {
			a.warn("the daemon, which sends them, is not running: nothing is sent until `netsky up`")
		}
	}
	return nil
}

func countEnded(list []store.Schedule) int {
	return len(slices.DeleteFunc(slices.Clone(list), func(s store.Schedule) bool { return s.Ended == 0 }))
}

func (a *app) removeSchedules(c *cli.Context) error {
	self, err := a.maySchedule("cron rm")
	if err != nil {
		return err
	}
	if c.NArg() == 0 {
		return usagef("cron rm: needs an id; `netsky cron ls` lists them")
	}
	h, err := a.home()
	if err != nil {
		return err
	}
	db, err := a.records(c.Context, h)
	if err != nil {
		return err
	}
	list, err := db.Schedules(c.Context, false)
	if db.Close(); err != nil {
		return err
	}
	j := store.NewJournal(h)
	defer j.Close()
	var errs []error
	done := 0
	for _, id := range c.Args().Slice() {
		if !slices.ContainsFunc(list, func(s store.Schedule) bool { return s.ID == id }) {
			errs = append(errs, fmt.Errorf("%s: no such schedule; `netsky cron ls` lists them", id))
			continue
		}
		err := j.Record(c.Context, store.EndSchedule{ID: id, Why: "removed by " + string(self), At: store.At(time.Now())},
			store.AddLog{Part: "cron", About: id, Text: fmt.Sprintf("%s removed %s", self, id)})
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: it still runs: %w", id, err))
			continue
		}
		done++
		a.print("%s: removed", id)
	}
	if err := errors.Join(errs...); err != nil && done > 0 {
		return exitError{exitPartly, err}
	}
	return errors.Join(errs...)
}
