package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/cli/view"
	"netsky/fleet"
	"netsky/spawn"
)

func (a mailVerbs) askCommand() *cli.Command {
	return &cli.Command{
		Name:      "ask",
		Usage:     "send an agent a message and wait for its answer",
		ArgsUsage: "ADDR TEXT",
		Description: "The answer goes to stdout; on a terminal, progress goes to stderr. What you have to do (a permission request, an agent\n" +
			"that is down) is always printed there. If there is no answer in time, or the agent ends first, the exit status is 3;\n" +
			"the message is not lost, and the answer will be in `netsky inbox`. An agent that is not up is not asked; with --queue\n" +
			"the message waits for its next start, and so does this command, for as long as --wait allows.",
		Flags: []cli.Flag{
			&cli.DurationFlag{Name: "wait", Value: 10 * time.Minute, Usage: "wait up to `TIME`, such as 90s or 1h"},
			&cli.StringFlag{Name: "file", Usage: "read the text from `FILE`; - is stdin"},
			&cli.BoolFlag{Name: "queue", Usage: "send it even if the agent is not up"},
			&cli.BoolFlag{Name: "json", Usage: "print the answer as JSON"},
		},
		Action: a.ask,
	}
}

func (a mailVerbs) ask(c *cli.Context) error {
	text, err := a.textArg(c, 1, "ask: needs an agent and one text, in quotes: netsky ask agent0 \"how is it going?\"")
	if err != nil {
		return err
	}
	to, err := agent.ParseArgAddress(c.Args().Get(0))
	if err != nil {
		return err
	}
	if c.Duration("wait") <= 0 {
		return usagef("ask: --wait %v: must be above 0", c.Duration("wait"))
	}
	_, tty := view.Width(a.err)
	f, err := a.fleetFor(ui{a.app, lines(func(text string) {
		if tty {
			a.warn("%s", text)
		}
	})})
	if err != nil {
		return err
	}
	r, err := fleet.Mail{Fleet: f}.Ask(c.Context, fleet.AskRequest{Agent: to, Text: text, Wait: c.Duration("wait"), Queue: c.Bool("queue")})
	if err != nil {
		return err
	}
	return a.printAnswer(f.Launcher, f.Actor, r.Entry, c.Bool("json"))
}

func (a mailVerbs) printAnswer(l *spawn.Launcher, self agent.ID, e bus.Entry, asJSON bool) error {
	if asJSON {
		if err := a.writeJSON(e.Envelope); err != nil {
			return err
		}
	} else if e.Envelope.Kind != envelope.KindError {
		if a.print("%s", e.Envelope.Text); a.broken != nil {
			return a.broken // it stays new
		}
	}
	if self == agent.Owner {
		if err := inboxVerbs(a).markRead(l, e); err != nil {
			a.warn("%v", err)
		}
	}
	if e.Envelope.Kind == envelope.KindError {
		return fmt.Errorf("%s answered with an error: %w", e.Envelope.From, errors.New(e.Envelope.Text))
	}
	return nil
}
