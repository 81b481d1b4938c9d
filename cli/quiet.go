package cli

import (
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/attention"
	"netsky/internal/words"
	"netsky/watch/hang"
)

func (a *app) quietCommand() *cli.Command {
	return &cli.Command{
		Name: "quiet", Usage: "hold off messages about agents that hang", ArgsUsage: "[DURATION|off]",
		Description: "`netsky quiet 1h` keeps quiet for an hour; of several times the latest end counts. Without an argument it prints what is\n" +
			"in force, and `netsky quiet off` ends it. Approvals, dialogs and crash loops are never held off.",
		Action: a.quiet,
	}
}

func (a *app) quiet(c *cli.Context) error {
	if err := a.may("quiet"); err != nil {
		return err
	}
	if c.NArg() > 1 {
		return usagef("quiet: takes one duration, such as 1h, or off")
	}
	h, err := a.madeHome()
	if err != nil {
		return err
	}
	now, word := time.Now(), c.Args().First()
	switch word {
	case "":
		a.printQuiet(attention.QuietNow(h, now), now)
	case "off":
		was, err := attention.EndQuiet(c.Context, h, now)
		if err != nil {
			return err
		}
		if was {
			a.print("no longer quiet")
		} else {
			a.print("was not quiet")
		}
	default:
		d, err := time.ParseDuration(word)
		if err != nil || d < time.Minute || d > attention.LongestQuiet {
			return usagef("quiet: %q: must be a duration from 1m to %s, such as 1h, or off", words.FirstLine(word), hang.Span(attention.LongestQuiet))
		}
		q, err := attention.Silence(c.Context, h, d, string(agent.Owner), now)
		if err != nil {
			return err
		}
		a.printQuiet(q, now)
	}
	return nil
}

func (a *app) printQuiet(q attention.QuietHour, now time.Time) {
	if until := q.Until(); !until.IsZero() {
		a.print("quiet until %s, for %s more", agent.Clock(until, now), hang.Span(until.Sub(now)))
		return
	}
	a.print("not quiet: you are told of agents that hang")
}
