package cli

import (
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/fleet"
	"netsky/internal/words"
)

func (a ownerVerbs) quietCommand() *cli.Command {
	return &cli.Command{
		Name: "quiet", Usage: "hold off messages about agents that hang", ArgsUsage: "[DURATION|off]",
		Description: "`netsky quiet 1h` keeps quiet for an hour; of several times the latest end counts. Without an argument it prints what is\n" +
			"in force, and `netsky quiet off` ends it. Approvals, dialogs and crash loops are never held off.",
		Action: a.quiet,
	}
}

func (a ownerVerbs) quiet(c *cli.Context) error {
	if err := a.may("quiet"); err != nil {
		return err
	}
	if c.NArg() > 1 {
		return usagef("quiet: takes one duration, such as 1h, or off")
	}
	f, err := a.fleet()
	if err != nil {
		return err
	}
	word := c.Args().First()
	req := fleet.QuietRequest{Off: word == "off"}
	if word != "" && !req.Off {
		if req.For, err = time.ParseDuration(word); err != nil || req.For == 0 {
			return usagef("quiet: %q: must be a duration, such as 1h, or off", words.FirstLine(word))
		}
	}
	r, err := fleet.Answers{Fleet: f}.Quiet(c.Context, req)
	switch {
	case err != nil:
		return err
	case !req.Off:
		a.printQuiet(r.Until, time.Now())
	case r.Was:
		a.print("no longer quiet")
	default:
		a.print("was not quiet")
	}
	return nil
}

func (a ownerVerbs) printQuiet(until, now time.Time) {
	if !until.IsZero() {
		a.print("quiet until %s, for %s more", agent.Clock(until, now), words.Span(until.Sub(now)))
		return
	}
	a.print("not quiet: you are told of agents that hang")
}
