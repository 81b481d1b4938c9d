package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/attention"
	"netsky/bus/envelope"
	"netsky/cli/view"
	"netsky/fleet/bridge"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/words"
	"netsky/phone"
	"netsky/phone/access"
	"netsky/phone/chat"
	"netsky/spawn"
	"netsky/store"
)

// phoneVerbs sets up and shows the phone's bridge.
type phoneVerbs struct{ *app }

func (a phoneVerbs) imessageCommand() *cli.Command {
	return &cli.Command{
		Name: "imessage", Aliases: []string{"phone"}, Usage: "manage the phone bridge: iMessage, or a Telegram bot",
		Description: "The bridge runs in the daemon if [imessage] or [telegram] in netsky.toml enables it.",
		Subcommands: []*cli.Command{
			{
				Name: "doctor", Usage: "find out what works between netsky and your phone, and what does not",
				Description: "Sends nothing. It also says what could not be checked here.",
				Flags:       []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print one JSON object"}},
				Action:      a.imessageDoctor,
			},
			{
				Name: "history", Usage: "print the last texts from and to your phone",
				Flags: []cli.Flag{
					&cli.IntFlag{Name: "n", Value: 30, Usage: "print the last `TEXTS`"},
					&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
				},
				Action: a.imessageHistory,
			},
			{
				Name: "send", Usage: "text your phone, to see that it works", ArgsUsage: "TEXT",
				Description: "Needs no daemon. It prints what became of the text: sent, unconfirmed, or failed and why.",
				Action:      a.imessageSend,
			},
			a.accessCommand(),
		},
		Action: a.needsSub,
	}
}

// phone returns what netsky.toml says about the owner's phone.
func (a phoneVerbs) phone(h home.Dir) bridge.Phone {
	return bridge.Phone{Config: a.config, Home: h, UserHome: a.getenv("HOME"), Env: a.environ}
}

// phoneDesk returns what does what the owner asks for by text.
func (a phoneVerbs) phoneDesk(l *spawn.Launcher, log *slog.Logger) bridge.Desk {
	o := viewVerbs(a).overviewOptions(l)
	f := daemonVerbs(a).ownersFleet(l, log)
	f.Runtimes = o.Runtimes
	return bridge.Desk{Fleet: f, Overview: func(ctx context.Context) (string, error) { return view.Collect(ctx, o).Text(), nil }}
}

// phoneService returns the bridge as the daemon runs it.
func (a phoneVerbs) phoneService(l *spawn.Launcher, log *slog.Logger) func(context.Context, func() *store.DB) error {
	return func(ctx context.Context, records func() *store.DB) error {
		p := a.phone(l.Home)
		t, err := p.Transport()
		if err != nil {
			return err
		}
		defer t.Close()
		o := p.Options(t, l.Bus, records, a.phoneDesk(l, log), log.With("part", "phone"))
		if ways := ownerVerbs(a).ways(); !ways.None() {
			o.Alert = func(ctx context.Context, subject, body string) {
				if _, err := ways.Send(ctx, l.Home, attention.Alert{Subject: subject, Body: body}); err != nil {
					log.Warn("escalate", "error", err)
				}
			}
		}
		return phone.New(o).Run(ctx)
	}
}

// tellUnread says so if what the owner texts now would not be read.
func (a phoneVerbs) tellUnread(ctx context.Context, h home.Dir) {
	err := a.phone(h).AwaitLook(ctx)
	if err == nil || ctx.Err() != nil {
		return
	}
	next := cmp.Or(advice.Of(err), adviceDoctor)
	a.warn("phone: reading has not begun: %v; what you text before it has is never read; %s", err, next)
}

func (a phoneVerbs) imessageHistory(c *cli.Context) error {
	n := c.Int("n")
	if n < 1 || n > 10_000 {
		return usagef("imessage history: -n %d: must be 1 to 10000", n)
	}
	if err := a.may("imessage history"); err != nil {
		return err
	}
	h, err := a.home()
	if err != nil {
		return err
	}
	list, err := bridge.Talk(c.Context, h, n)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return a.writeJSON(map[string]any{"texts": list})
	}
	for _, line := range phone.Transcript(list) {
		a.print("%s", line)
	}
	if len(list) == 0 {
		a.print("no texts are on record")
	}
	return nil
}

const adviceDoctor = "`netsky imessage doctor` examines the way to your phone"

func (a phoneVerbs) imessageSend(c *cli.Context) error {
	if err := a.may("imessage send"); err != nil {
		return err
	}
	text, err := one(c, "one text, in quotes")
	if err != nil {
		return err
	}
	switch {
	case words.Blank(text):
		return usagef("imessage send: the text is empty")
	case len(text) > phone.MaxText:
		return usagef("imessage send: the text has %d bytes; at most %d are sent", len(text), phone.MaxText)
	}
	if _, err := a.madeHome(); err != nil {
		return err
	}
	l, err := a.launcher() // reads netsky.toml
	if err != nil {
		return err
	}
	to, got, err := a.phone(l.Home).Text(c.Context, text)
	switch {
	case errors.Is(err, phone.ErrWaits):
		return exitError{exitPartly, advice.With(fmt.Errorf("imessage send: %w", err), "`netsky status` shows what waits, `netsky imessage doctor` examines the way to your phone")}
	case err != nil:
		err = fmt.Errorf("imessage send: not sent: %w", err)
		if advice.Of(err) == "" {
			err = advice.With(err, adviceDoctor)
		}
		return err
	case got.State == chat.Failed:
		return advice.With(fmt.Errorf("imessage send: not sent: %s", got.Fact), adviceDoctor)
	case got.State == chat.Unconfirmed:
		return exitError{exitPartly, advice.With(fmt.Errorf("imessage send: unconfirmed: %s", got.Fact), "look whether it is on your phone before you send it again")}
	}
	a.print("sent to %s", to.Identifier)
	return nil
}

func (a phoneVerbs) imessageDoctor(c *cli.Context) error {
	if err := a.may("imessage doctor"); err != nil {
		return err
	}
	l, err := a.launcher()
	if err != nil {
		return err
	}
	facts, err := a.phone(l.Home).Check(c.Context)
	if err != nil {
		return err
	}
	bad := 0
	for _, f := range facts {
		if f.State == chat.Bad {
			bad++
		}
	}
	if c.Bool("json") {
		err = a.writeJSON(map[string]any{"checks": facts})
	} else {
		for _, f := range facts {
			a.print("%s", factLine(f))
		}
	}
	if err == nil && bad > 0 {
		err = exitError{exitFailed, errTold}
	}
	return err
}

// factLine is one line of `netsky imessage doctor`.
func factLine(f chat.Fact) string {
	word := map[chat.FactState]string{chat.OK: "ok", chat.Bad: "BAD", chat.Unchecked: "not checked"}[f.State]
	line := fmt.Sprintf("%-11s  %s: %s", word, f.Name, envelope.Line(f.Detail, 400))
	if f.Next != "" {
		line += "\n" + strings.Repeat(" ", 13) + f.Next
	}
	return line
}

// phoneNotes are the lines of status about the phone.
func (a phoneVerbs) phoneNotes(h home.Dir) []string {
	if !a.phone(h).On() {
		return nil
	}
	s, err := phone.Load(h)
	if err != nil {
		return nil // it has not run yet
	}
	now := time.Now()
	lines := s.Lines(now)
	if w, ok, err := access.Look(h, now); ok && err == nil && w.Wrong > 0 {
		lines = append(lines, "phone: a pairing waits for its code until "+w.Until.Local().Format("15:04")+"; "+w.String())
	}
	runs, err := h.Locked(home.PhoneLock)
	switch since, silent := s.Silent(now); {
	case err == nil && runs && silent:
		return []string{"phone: the bridge " + bridge.SilentSince(since) + "; what you write there may wait"}
	case err == nil && !runs:
		return append(lines, "phone: nobody reads or sends texts, since the bridge does not run; `netsky up` starts it with the daemon, `netsky imessage doctor` says more")
	}
	return lines
}
