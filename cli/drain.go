package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/cli/view"
	"netsky/fleet"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/prompts"
	"netsky/spawn"
)

func (a inboxVerbs) drainCommand() *cli.Command {
	return &cli.Command{
		Name:      "drain",
		Usage:     "print the waiting mail of a mailbox and file it",
		ArgsUsage: "[AGENT]",
		Description: "Prints each message as a model gets it. What was written to stdout and read counts as delivered; the rest stays.\n" +
			"Without AGENT it takes the mail of the agent in whose pane this runs; the mail of another agent that is running is\n" +
			"refused. An agent that drains its own mailbox gets up to 30 messages, or N with --max, and 200 KiB at a time.",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "max", Value: 100, Usage: "take at most `N`"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object per message, one per line; the startup text is in \"notice\""},
		},
		Action: a.drain,
	}
}

var errOwnersMail = advice.With(errors.New("the daemon takes this mail"), "`netsky inbox` shows it")

var errOwnMail = advice.With(errors.New("is running and takes its mail itself"),
	"`netsky channel ls AGENT` lists it without taking it")

var errTakenMail = advice.With(errors.New("another process is taking its mail"), "run this again when it has ended")

// Limits of an agent's own drain: the output of a tool may be cut before the model sees
// it, and what is cut would be filed.
const (
	ownMax   = 30
	ownBytes = 200 << 10
)

// errEnough is returned when a drain has printed ownBytes.
var errEnough = errors.New("enough for one output")

func (a inboxVerbs) drain(c *cli.Context) error {
	id, err := a.mailboxArg(c)
	if err != nil {
		return err
	}
	self, err := a.self()
	if err != nil {
		return err
	}
	if id != self {
		if err := fleet.May(self, "channel drain AGENT"); err != nil {
			return err
		}
	}
	l, err := a.launcher()
	if err != nil {
		return err
	}
	max, bytes := c.Int("max"), 0
	if self == id && self != agent.Owner {
		bytes = ownBytes
		if !c.IsSet("max") {
			max = ownMax
		}
	}
	first := "" // in front of the first message
	la, err := l.SilentLaunch(id)
	switch {
	case err != nil: // the mailbox's lock decides
	case self != id:
		return receiving(l, id)
	case la.Start == a.getenv("NETSKY_START") && !l.Greeted(id, la.Start):
		if first, err = a.greeting(l, la, c.Bool("json")); err != nil {
			return err
		}
	}
	if view.IsClosed(a.out) {
		return view.ErrNoStdout
	}
	out, printed := view.NewReader(a.out, a.out, false), 0
	n, err := l.Bus.Drain(c.Context, id, max, func(e envelope.Envelope) error {
		text, err := drained(e, c.Bool("json"))
		if err != nil {
			return err
		}
		if bytes > 0 && printed > 0 && printed+len(text) > bytes {
			return errEnough
		}
		printed += len(text)
		if err := out.Print(c.Context, first+text); err != nil {
			return err
		}
		if first != "" {
			first = ""
			if err := l.Greet(id, la.Start); err != nil {
				a.warn("%v", err) // at worst it gets the startup text twice
			}
		}
		return nil
	})
	switch {
	case errors.Is(err, home.ErrLocked) && id == agent.Owner:
		return fmt.Errorf("%s: %w", id, errOwnersMail)
	case errors.Is(err, home.ErrLocked):
		return receiving(l, id)
	case errors.Is(err, errEnough):
	case err != nil && n > 0:
		return exitError{exitPartly, fmt.Errorf("%d printed and filed, the rest stay: %w", n, err)}
	case err != nil:
		return err
	case n == 0:
		a.warn("no mail for %s", id)
	}
	a.tellMore(l.Bus, id, n)
	return nil
}

// receiving returns the error that names who takes an agent's mail.
func receiving(l *spawn.Launcher, id agent.ID) error {
	if la, err := l.RunningLaunch(id); err == nil {
		return fmt.Errorf("%s: %w (it runs on %s)", id, errOwnMail, la.Runtime)
	}
	if who, ok := l.Home.LockHolder(home.ReceiverLock(id)); ok && who.Named() {
		return fmt.Errorf("%s: %w: %s, pid %d", id, errTakenMail, who.Program, who.PID)
	}
	return fmt.Errorf("%s: %w", id, errTakenMail)
}

// tellMore prints that mail is left when a limit has ended the drain.
func (a inboxVerbs) tellMore(b *bus.Bus, id agent.ID, taken int) {
	if left, err := b.Count(id, bus.Inbox); err == nil && left > 0 && taken > 0 {
		a.warn("%d more wait for %s: run it again", left, id)
	}
}

// greeting returns the startup text, for an agent that has not had it yet.
func (a inboxVerbs) greeting(l *spawn.Launcher, la agent.Launch, asJSON bool) (string, error) {
	if _, err := a.cfg(); err != nil {
		return "", err
	}
	text, err := prompts.Startup(a.planner(l).Facts(la))
	if err != nil {
		return "", err
	}
	if asJSON {
		line, err := json.Marshal(map[string]string{"notice": strings.TrimSpace(text)})
		return string(line) + "\n", err
	}
	return envelope.RenderNotice(strings.TrimSpace(text)) + "\n", nil
}

// drained returns a message as a drain prints it.
func drained(e envelope.Envelope, asJSON bool) (string, error) {
	if !asJSON {
		return envelope.Render(e, time.Now()) + "\n", nil
	}
	line, err := json.Marshal(e)
	return string(line) + "\n", err
}
