package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/attention"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/phone"
	"netsky/store"
)

func (a ownerVerbs) escalateCommand() *cli.Command {
	return &cli.Command{
		Name: "escalate", Usage: "reach the owner outside of netsky", ArgsUsage: "SUBJECT [BODY]",
		Description: "Tries your phone, if it is set up, and the ways of [escalate] in netsky.toml in turn, each three times: a command of\n" +
			"yours, a webhook, a desktop notification. It needs no agent and no daemon. The daemon does the same with mail that needs you (approvals, dialogs,\n" +
			"crash loops, hangs, limits) and that you have not read within 5 s. If no way works, `netsky status` says so until one\n" +
			"does, or until `netsky escalate --clear`.",
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "clear", Usage: "forget alerts that could not be sent"}},
		Action: a.escalate,
	}
}

func (a ownerVerbs) escalate(c *cli.Context) error {
	if err := a.may("escalate"); err != nil {
		return err
	}
	h, err := a.madeHome()
	if err != nil {
		return err
	}
	if c.Bool("clear") {
		n, err := attention.Clear(c.Context, h)
		if err == nil {
			a.print("%s", forgotten(n))
		}
		return err
	}
	if c.NArg() == 0 || c.NArg() > 2 {
		return usagef("escalate: needs a subject, and perhaps a body")
	}
	self, err := a.self()
	if err != nil {
		return err
	}
	by, err := a.allWays(h).Send(c.Context, h, attention.Alert{Subject: c.Args().Get(0), Body: c.Args().Get(1)})
	a.recordAlert(c.Context, h, self, c.Args().Get(0), by, err)
	if errors.Is(err, attention.ErrNone) {
		return advice.With(err, "set command, webhook or desktop under [escalate] in %s, or set up your phone (docs/imessage.md)", tilde(a.app, h.Path(home.ConfigFile)))
	}
	if errors.Is(err, phone.ErrWaits) {
		return exitError{exitPartly, advice.With(err, "`netsky status` shows what waits; %s", adviceDoctor)}
	}
	if err != nil {
		err = fmt.Errorf("not sent: %w", err)
		if advice.Of(err) == "" && phoneVerbs(a).phone(h).On() {
			err = advice.With(err, adviceDoctor)
		}
		return err
	}
	a.print("sent by %s", by)
	return nil
}

func forgotten(alerts int) string {
	switch alerts {
	case 0:
		return "no alert waits to be sent"
	case 1:
		return "1 alert that could not be sent is forgotten"
	}
	return fmt.Sprintf("%d alerts that could not be sent are forgotten", alerts)
}

// allWays returns how the owner can be reached, by their phone first.
func (a ownerVerbs) allWays(h home.Dir) attention.Ways {
	w := a.ways()
	if p := phoneVerbs(a).phone(h); p.On() {
		w.Phone = p.Alert
	}
	return w
}

// ways returns how the owner can be reached besides by their phone.
func (a ownerVerbs) ways() attention.Ways {
	w := a.config.Escalate
	return attention.Ways{Command: w.Command, Webhook: w.Webhook, Desktop: w.Desktop, Env: a.environ}
}

// recordAlert records an alert, if the records can be used now.
func (a ownerVerbs) recordAlert(ctx context.Context, h home.Dir, self agent.ID, subject, by string, err error) {
	log := store.AddLog{Part: "escalate", Actor: self, Text: "alerted by " + by + ": " + subject}
	if err != nil {
		log.Level, log.Text = store.LevelError, "not alerted: "+subject
	}
	if err := store.NewJournal(h).Record(ctx, log); err != nil && !errors.Is(err, store.ErrSpooled) {
		a.warn("not recorded: %v", err)
	}
}
