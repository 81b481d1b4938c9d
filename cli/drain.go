package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/prompts"
	"netsky/spawn"
)

func (a *app) drainCommand() *cli.Command {
	return &cli.Command{
		Name:      "drain",
		Usage:     "take the waiting mail out of a mailbox and print it",
		ArgsUsage: "[AGENT]",
		Description: "Prints each message as a model gets it, and files as delivered what stdout took; the rest stays. Without AGENT it\n" +
			"is the mailbox of the agent in whose pane this runs. A mailbox whose agent is running is that agent's to read: it\n" +
			"is refused. An agent that drains its own gets 30 messages or 200 KiB at once, unless --max says otherwise.",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "max", Value: 100, Usage: "take at most `N`"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object a message, each on a line; the text for a fresh start is in \"notice\""},
		},
		Action: a.drain,
	}
}

var errOwnersMail = errors.New("its mail is taken by the daemon")

var errOwnMail = errors.New("is running, and takes its mail itself")

var errTakenMail = errors.New("another process is taking its mail")

// What an agent's own drain prints at once: a tool's longer output might be cut
// before the model sees it, and what is cut was filed.
const (
	ownMax   = 30
	ownBytes = 200 << 10
)

// errEnough ends a drain that has printed enough.
var errEnough = errors.New("enough for one output")

func (a *app) drain(c *cli.Context) error {
	id, err := a.mailboxArg(c)
	if err != nil {
		return err
	}
	self, err := a.self()
	if err != nil {
		return err
	}
	if self.IsClone() && id != self {
		return usagef("channel drain: %s may take its own mail only", self)
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
	case err != nil: // whoever holds the mailbox says whether it may be taken
	case self != id:
		return receiving(l, id)
	case la.Start == a.getenv("NETSKY_START") && !l.Greeted(id, la.Start):
		if first, err = a.greeting(la, c.Bool("json")); err != nil {
			return err
		}
	}
	if closed(a.out) {
		return errNoStdout
	}
	out, printed := newTaker(a.out), 0
	n, err := l.Bus.Drain(c.Context, id, max, func(e envelope.Envelope) error {
		text, err := drained(e, c.Bool("json"))
		if err != nil {
			return err
		}
		if bytes > 0 && printed > 0 && printed+len(text) > bytes {
			return errEnough
		}
		printed += len(text)
		if err := out.print(c.Context, first+text); err != nil {
			return err
		}
		if first != "" {
			first = ""
			if err := l.Greet(id, la.Start); err != nil {
				a.warn("%v", err) // at worst it is told twice who it is
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
		return exitError{exitPartly, fmt.Errorf("%d printed and filed, the others stay: %w", n, err)}
	case err != nil:
		return err
	case n == 0:
		a.warn("no mail for %s", id)
	}
	a.tellMore(l.Bus, id, n)
	return nil
}

// receiving says who takes an agent's mail, so that nobody else can.
func receiving(l *spawn.Launcher, id agent.ID) error {
	if la, err := l.RunningLaunch(id); err == nil {
		return fmt.Errorf("%s: %w (it runs on %s)", id, errOwnMail, la.Runtime)
	}
	if who, ok := l.Home.LockHolder(home.ReceiverLock(id)); ok && who.Named() {
		return fmt.Errorf("%s: %w: %s, pid %d", id, errTakenMail, who.Program, who.PID)
	}
	return fmt.Errorf("%s: %w", id, errTakenMail)
}

// tellMore says that mail is left when a bound has ended the drain.
func (a *app) tellMore(b *bus.Bus, id agent.ID, taken int) {
	if left, err := b.Count(id, bus.Inbox); err == nil && left > 0 && taken > 0 {
		a.warn("more waits for %s (%d): run it again", id, left)
	}
}

// greeting is the startup text for an agent that has been told nothing yet.
func (a *app) greeting(la agent.Launch, asJSON bool) (string, error) {
	cfg, err := a.cfg()
	if err != nil {
		return "", err
	}
	h, err := a.home()
	if err != nil {
		return "", err
	}
	text, err := prompts.Startup(prompts.Input{
		Agent: la.Agent, Dir: la.Dir, Owner: cfg.Owner.Name, Machine: machine(), Home: h, Runtime: la.Runtime,
	})
	if err != nil {
		return "", err
	}
	if asJSON {
		line, err := json.Marshal(map[string]string{"notice": strings.TrimSpace(text)})
		return string(line) + "\n", err
	}
	return envelope.RenderNotice(strings.TrimSpace(text)) + "\n", nil
}

// drained is a message as a drain prints it.
func drained(e envelope.Envelope, asJSON bool) (string, error) {
	if !asJSON {
		return envelope.Render(e, time.Now()) + "\n", nil
	}
	line, err := json.Marshal(e)
	return string(line) + "\n", err
}

// A taker prints, and knows as far as the system tells whether a reader took it:
// what lies in the pipe of a reader that has gone was printed for nobody.
type taker struct {
	out  interface{ Write([]byte) (int, error) }
	pipe *pipe     // nil: written is taken
	till time.Time // how long a slow reader is waited for, all in all; zero before it begins

	person bool // who reads is at a terminal, and waited for without end
	slow   bool // the reader was waited for in vain, and has taken nothing since
}

// slowReader is how long all of a drain waits for its reader: one that reads only
// when we have ended counts as one that will.
const slowReader = 2 * time.Second

func newTaker(out interface{ Write([]byte) (int, error) }) *taker {
	return &taker{out: out, pipe: pipeOf(out)}
}

var errNoStdout = errors.New("stdout: closed; nothing is taken")

var errNotTaken = errors.New("stdout: its reader has gone")

// print prints, and waits for the reader. Once it has been slow, what it has not
// taken counts as what it will.
func (t *taker) print(ctx context.Context, text string) error {
	if t.till.IsZero() {
		t.till = time.Now().Add(slowReader)
	}
	if _, err := t.out.Write([]byte(text)); err != nil {
		return err
	}
	_, err := t.wait(ctx, t.till)
	return err
}

// show is print for what has to be known to be taken: it waits for each anew, and
// reports whether the reader has taken all that was printed.
func (t *taker) show(ctx context.Context, text string) (taken bool, err error) {
	if _, err := t.out.Write([]byte(text)); err != nil {
		return false, err
	}
	till := time.Now()
	if !t.slow {
		till = till.Add(slowReader)
	}
	if !t.person { // it is in the pipe already, whatever comes
		ctx = context.WithoutCancel(ctx)
	}
	taken, err = t.wait(ctx, till)
	t.slow = err == nil && !taken
	return taken, err
}

func (t *taker) wait(ctx context.Context, till time.Time) (taken bool, err error) {
	if t.pipe == nil {
		return true, nil
	}
	for wait := 50 * time.Microsecond; ; wait = min(2*wait, 10*time.Millisecond) {
		unread, gone := t.pipe.state()
		switch {
		case unread && gone:
			return false, errNotTaken
		case !unread:
			return true, nil
		case !t.person && time.Now().After(till):
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(wait):
		}
	}
}
