package cli

import (
	"strings"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/daemon/schedule"
	"netsky/fleet"
	"netsky/internal/advice"
	"netsky/internal/words"
)

const cronDescription = "Each run is a message to the agent, as if you had sent it, and costs what a turn costs; its answer is in `netsky inbox`.\n" +
	"While the agent has not finished one, the next is skipped. Nothing is sent to an agent that is down. If the daemon was\n" +
	"not running, one run is made up for, and `netsky log` says how many were missed. Only the owner and agent0 can add one."

var limitFlags = []cli.Flag{
	&cli.IntFlag{Name: "times", Usage: "end after `N` messages", DefaultText: "no limit"},
	&cli.StringFlag{Name: "until", Usage: "end at `TIME`: 18:00, \"2026-12-24 18:00\", or a duration such as 8h"},
}

// scheduleVerbs keeps schedules.
type scheduleVerbs struct{ *app }

func (a scheduleVerbs) cronCommand() *cli.Command {
	return &cli.Command{
		Name: "cron", Usage: "send agents messages at set times", Action: a.needsSub, Description: cronDescription,
		Subcommands: []*cli.Command{
			{
				Name: "add", Usage: "send a text to an agent at set times", ArgsUsage: "WHEN ADDR TEXT", Flags: limitFlags,
				Description: "WHEN is one argument, in quotes: five fields (minute hour day month weekday, in local time, as in cron), @hourly,\n" +
					"@daily, @weekly, @monthly, or \"every 30m\". For example: netsky cron add \"*/15 9-17 * * 1-5\" agent0 \"check the build\"\n\n" + cronDescription,
				Action: func(c *cli.Context) error {
					return a.addSchedule(c, 1, fleet.ScheduleRequest{When: c.Args().Get(0)}, "a schedule, an agent and a text, each in quotes: netsky cron add \"0 9 * * 1-5\" agent0 \"check the build\"")
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

func (a scheduleVerbs) loopCommand() *cli.Command {
	return &cli.Command{
		Name: "loop", Usage: "send an agent a message now, and again and again", ArgsUsage: "ADDR EVERY TEXT", Flags: limitFlags,
		Description: "EVERY is an interval of at least 1m, such as 30m or 6h. `netsky cron ls` lists it, `netsky cron rm ID` ends it.\n\n" + cronDescription,
		Action: func(c *cli.Context) error {
			return a.addSchedule(c, 0, fleet.ScheduleRequest{When: "every " + strings.TrimPrefix(c.Args().Get(1), "every "), Now: true}, "an agent, an interval and a text, in quotes: netsky loop agent0 30m \"how is it going?\"")
		},
	}
}

func (a scheduleVerbs) schedules() (fleet.Schedules, error) {
	f, err := a.fleet()
	return fleet.Schedules{Fleet: f}, err
}

// addSchedule adds what is asked for; the agent is argument number who.
func (a scheduleVerbs) addSchedule(c *cli.Context, who int, r fleet.ScheduleRequest, usage string) (err error) {
	verb := verbOf(c)
	if err := a.may(verb); err != nil {
		return err
	}
	if r.Text, err = a.textArg(c, 2, verb+": needs "+usage); err != nil {
		return err
	}
	host, ids, _, err := aimed(a).splitAt([]string{c.Args().Get(who)})
	if host != "" {
		err = advice.With(usagef("%s: %s: schedules are kept on the agent's host", verb, ids[0].At(host)), "`netsky --on %s %s …`, with %s, adds it there", host, verb, ids[0])
	}
	if err == nil {
		r.Agent, err = agent.ParseAgent(c.Args().Get(who))
	}
	if err != nil {
		return err
	}
	if r.Times, r.Until = c.Int("times"), c.String("until"); c.IsSet("times") && r.Times < 1 {
		return usagef("%s: --times %d: must be above 0", verb, r.Times)
	}
	f, err := a.schedules()
	if err != nil {
		return err
	}
	s, err := f.Add(c.Context, r)
	if s.ID == "" {
		return err
	}
	a.print("%s: sends %s this text, %s, first %s; `netsky cron rm %s` removes it", s.ID, s.Target, schedule.Words(s.Schedule), s.Begins, s.ID)
	for _, text := range s.Warnings {
		a.warn("%s", text)
	}
	return err
}

func (a scheduleVerbs) listSchedules(c *cli.Context) error {
	f, err := a.schedules()
	if err != nil {
		return err
	}
	r, err := f.List(c.Context, fleet.SchedulesRequest{All: c.Bool("all")})
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return a.writeJSON(map[string]any{"schedules": r.Schedules})
	}
	for _, v := range r.Schedules {
		a.print("%s  %-14s %s  %s%s", v.ID, v.Target, v.Line(), words.Brief(v.Text, 60), words.Note(v.Warning))
	}
	if len(r.Schedules) == 0 {
		r.Warning = "no schedules; `netsky cron add` and `netsky loop` add one"
	}
	if r.Warning != "" {
		a.warn("%s", r.Warning)
	}
	return nil
}

func (a scheduleVerbs) removeSchedules(c *cli.Context) error {
	if err := a.may("cron rm"); err != nil {
		return err
	}
	if c.NArg() == 0 {
		return usagef("cron rm: needs an id; `netsky cron ls` lists them")
	}
	f, err := a.schedules()
	if err != nil {
		return err
	}
	r, err := f.Remove(c.Context, fleet.UnscheduleRequest{IDs: c.Args().Slice()})
	for _, id := range r.Removed {
		a.print("%s: removed", id)
	}
	return err
}
