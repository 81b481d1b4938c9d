package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/cli/view"
	"netsky/daemon"
	"netsky/fleet/bridge"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/phone/access"
	"netsky/store"
)

func (a phoneVerbs) accessCommand() *cli.Command {
	return &cli.Command{
		Name: "access", Usage: "decide who may give orders by phone", Action: a.needsSub,
		Description: "Allowed are the handles in netsky.toml (`imessage` under [owner]) and those that you allow here, except those that you\n" +
			"deny here. A handle is a telephone number with its country, a mail address or a Telegram user's id. If the list cannot\n" +
			"be read, nobody may give orders. Only you can change it; for agents, these verbs refuse to run.",
		Subcommands: []*cli.Command{
			{
				Name: "ls", Usage: "list who may give orders by phone", Action: a.accessList,
				Flags: []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print one JSON object"}},
			},
			{
				Name: "allow", Usage: "allow a handle to give orders by phone", ArgsUsage: "HANDLE", Action: a.accessAllow,
				Description: "This also ends a denial. For example: netsky imessage access allow +15550100",
			},
			{
				Name: "deny", Usage: "deny a handle, also one that netsky.toml allows", ArgsUsage: "HANDLE", Action: a.accessDeny,
			},
			{
				Name: "pair", Usage: "allow the phone that sends a code", Action: a.accessPair,
				Description: "Prints a code of six letters. Send it from the phone, alone in a message, within ten minutes; then this asks whether to\n" +
					"allow the handle that it came from. It needs a terminal, and the bridge must be running. SMS does not count: its\n" +
					"sender can be forged.",
			},
		},
	}
}

// accessHome returns the home, for the owner alone: what a message talks an agent into must
// not change who may send messages.
func (a phoneVerbs) accessHome(c *cli.Context) (home.Dir, error) {
	if err := a.may(verbOf(c)); err != nil {
		return home.Dir{}, err
	}
	return a.madeHome()
}

func (a phoneVerbs) accessList(c *cli.Context) error {
	h, err := a.accessHome(c)
	if err != nil {
		return err
	}
	cfg, err := a.cfg()
	if err != nil {
		return err
	}
	p := a.phone(h)
	p.Config = cfg
	l, err := access.Load(h, p.Owner())
	if err != nil {
		return err
	}
	list := l.Entries()
	if c.Bool("json") {
		type entry struct {
			Handle  string     `json:"handle"`
			Allowed bool       `json:"allowed"`
			By      string     `json:"by"`
			Added   store.Time `json:"added"`
		}
		out := make([]entry, 0, len(list))
		for _, e := range list {
			out = append(out, entry{e.Handle, !e.Denied, e.By, store.At(e.Added)})
		}
		return a.writeJSON(map[string]any{"handles": out})
	}
	now, allowed := time.Now(), false
	for _, e := range list {
		words := "allowed by the " + e.By
		switch {
		case e.Denied && e.Configured:
			words = "denied, though the configuration allows it"
		case e.Denied:
			words = "denied"
		case e.By == access.ByConfig:
			words = "allowed by netsky.toml"
		case e.By == access.ByPairing:
			words = "allowed by a pairing"
		}
		if !e.Added.IsZero() {
			words += ", " + agent.Clock(e.Added, now)
		}
		a.print("%s  %s", e.Handle, words)
		allowed = allowed || !e.Denied
	}
	if !allowed {
		a.warn("nobody may give orders by phone; `netsky imessage access allow HANDLE` or `netsky imessage access pair` allows somebody")
	}
	return nil
}

func (a phoneVerbs) accessAllow(c *cli.Context) error {
	return a.changeAccess(c, access.Allow, "may give orders by phone", "was allowed already")
}

func (a phoneVerbs) accessDeny(c *cli.Context) error {
	return a.changeAccess(c, access.Deny, "may not give orders by phone", "was denied already")
}

func (a phoneVerbs) changeAccess(c *cli.Context, change func(context.Context, home.Dir, string, time.Time) (string, bool, error), done, before string) error {
	h, err := a.accessHome(c)
	if err != nil {
		return err
	}
	handle, err := one(c, "one handle: a telephone number with its country, a mail address or a Telegram user's id")
	if err != nil {
		return err
	}
	stored, changed, err := change(c.Context, h, handle, time.Now())
	switch {
	case errors.Is(err, access.ErrHandle):
		return usagef("%s: %w", verbOf(c), err)
	case err != nil:
		return err
	case changed:
		a.recordAccess(c.Context, h, stored+": "+done)
		a.print("%s: %s", stored, done)
	default:
		a.print("%s: %s", stored, before)
	}
	if cfg, err := a.cfg(); err == nil {
		if why := bridge.Silent(stored, cfg.Telegram.Enabled); why != "" {
			a.warn("no text comes from %s: %s", stored, why)
		}
	}
	return nil
}

// mostWrong is how many wrong codes are told of one by one.
const mostWrong = 20

func (a phoneVerbs) accessPair(c *cli.Context) (err error) {
	h, err := a.accessHome(c)
	if err != nil {
		return err
	}
	if _, ok := view.Width(a.in); !ok {
		return usagef("imessage access pair: not a terminal; it asks before it allows anybody")
	}
	if err := a.bridged(c.Context, h); err != nil {
		return err
	}
	ctx := c.Context
	p, err := access.Begin(ctx, h, time.Now())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.End(context.WithoutCancel(ctx), h)) }()
	a.warn("send this code from the phone, alone in a message, until %s; Ctrl-C ends the pairing", p.Until.Local().Format("15:04"))
	a.print("%s", p.Code)
	who, err := p.Wait(ctx, h, func(w access.Waiting) {
		if w.Wrong <= mostWrong {
			a.warn("%s, so far; it is not the code above", w)
		}
	})
	switch {
	case ctx.Err() != nil:
		return errors.New("imessage access pair: ended; nobody was allowed")
	case errors.Is(err, access.ErrOver):
		return fmt.Errorf("imessage access pair: nobody was allowed: %w", err)
	case err != nil:
		return err
	}
	yes, err := a.agreed(ctx, fmt.Sprintf("%s sent the code by %s. Allow it to give orders by phone?", who.Handle, who.Service))
	if err != nil || !yes {
		return err
	}
	if err := p.Confirm(context.WithoutCancel(ctx), h, who, time.Now()); err != nil {
		return fmt.Errorf("imessage access pair: %s was not allowed: %w", who.Handle, err)
	}
	a.recordAccess(ctx, h, who.Handle+": may give orders by phone, by a pairing")
	a.print("%s: may give orders by phone", who.Handle)
	if err := a.phone(h).Welcome(ctx, who.Handle); err != nil {
		a.warn("it was not told so: %v", err)
	}
	return nil
}

// recordAccess records who may speak from now on, if the records can be used.
func (a phoneVerbs) recordAccess(ctx context.Context, h home.Dir, text string) {
	log := store.AddLog{Part: "phone", Actor: agent.Owner, Text: text}
	if err := store.NewJournal(h).Record(context.WithoutCancel(ctx), log); err != nil && !errors.Is(err, store.ErrSpooled) {
		a.warn("not recorded: %v", err)
	}
}

// bridged reports whether a bridge runs that could receive a code.
func (a phoneVerbs) bridged(ctx context.Context, h home.Dir) error {
	cfg, err := a.cfg()
	if err != nil {
		return err
	}
	p := a.phone(h)
	if p.Config = cfg; !p.On() {
		return advice.With(errors.New("imessage access pair: no phone is enabled, so no code can arrive"),
			"set `enabled = true` under [imessage] or [telegram] in %s; `netsky imessage access allow HANDLE` needs none", h.Path(home.ConfigFile))
	}
	if _, err := daemon.Ping(ctx, h); errors.Is(err, daemon.ErrNotRunning) {
		return advice.With(errors.New("imessage access pair: the daemon, which runs the bridge, is not running, so no code can arrive"), "run `netsky up`")
	} else if err != nil {
		return err
	}
	if on, err := h.Locked(home.PhoneLock); err == nil && !on {
		return advice.With(errors.New("imessage access pair: the daemon runs without the bridge, so no code can arrive"),
			"the phone was enabled after the daemon started: run `netsky daemon restart`; `netsky imessage doctor` shows more")
	}
	return nil
}

// agreed asks on the terminal; the end of ctx is a no. The read that it leaves behind then
// ends with the process.
func (a phoneVerbs) agreed(ctx context.Context, question string) (bool, error) {
	fmt.Fprintf(a.err, "%s [y/N] ", question)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.in).ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.err)
		return false, errors.New("imessage access pair: ended; nobody was allowed")
	case word := <-answer:
		if word == "y" || word == "yes" {
			return true, nil
		}
		a.print("nothing was done")
		return false, nil
	}
}
