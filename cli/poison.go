package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/bus"
	"netsky/fleet"
	"netsky/home"
	"netsky/internal/words"
)

func (a inboxVerbs) poisonCommand() *cli.Command {
	act := func(do func(fleet.Mail, context.Context, fleet.PoisonRequest) (fleet.PoisonResult, error)) cli.ActionFunc {
		return func(c *cli.Context) error {
			if c.NArg() != 2 {
				return usagef("channel poison %s: needs an address and a file name; `netsky channel poison ls` lists both", c.Command.Name)
			}
			f, err := a.fleet()
			if err != nil {
				return err
			}
			r := fleet.PoisonRequest{Mailbox: c.Args().Get(0), File: c.Args().Get(1)}
			v, err := do(fleet.Mail{Fleet: f}, c.Context, r)
			if err != nil {
				return err
			}
			word := "deleted"
			if v.Place != "" {
				word = "back in the " + v.Place
			}
			id, _ := agent.ParseArgAddress(r.Mailbox)
			a.print("%s: %s: %s", id, r.File, word)
			return nil
		}
	}
	return &cli.Command{
		Name: "poison", Usage: "inspect and repair messages netsky could not read",
		Subcommands: []*cli.Command{
			{Name: "ls", Usage: "list them, with the reasons", ArgsUsage: "[ADDR]", Action: a.poisonLs},
			{Name: "show", Usage: "print one and what is wrong with it", ArgsUsage: "ADDR FILE", Action: a.poisonShow},
			{Name: "retry", Usage: "move one back to the inbox or outbox where it was found, if it is valid now", ArgsUsage: "ADDR FILE", Action: act(fleet.Mail.Requeue)},
			{Name: "drop", Usage: "delete one", ArgsUsage: "ADDR FILE", Action: act(fleet.Mail.Drop)},
		},
		Action: a.needsSub,
	}
}

func (a inboxVerbs) poisonLs(c *cli.Context) error {
	b, err := a.bus()
	if err != nil {
		return err
	}
	ids, err := b.All()
	if err != nil {
		return err
	}
	if c.NArg() > 0 {
		id, err := a.mailboxArg(c)
		if err != nil {
			return err
		}
		ids = []agent.ID{id}
	}
	found := 0
	for _, id := range ids {
		list, err := b.List(id, bus.Poison, 0)
		if err != nil {
			return err
		}
		found += len(list)
		for _, e := range list {
			why := words.FirstLine(e.Why)
			if now := poisonNow(b, e); now != "" {
				why = now
			}
			a.print("%-14s %s  %s", id, e.Name, why)
		}
	}
	if found == 0 {
		a.warn("no unreadable messages")
	}
	return nil
}

// poisonNow says what a file is now that was changed in poison/; "" if it was not.
func poisonNow(b *bus.Bus, e bus.Entry) string {
	changed, err := b.PoisonNow(e.Mailbox, e.Name)
	switch {
	case !changed:
		return ""
	case err != nil:
		return "changed, and still not valid: " + strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return fmt.Sprintf("changed, and valid now: it goes back once its mailbox is read, or by `netsky channel poison retry %s %s`", e.Mailbox, e.Name)
}

func (a inboxVerbs) poisonShow(c *cli.Context) error {
	if c.NArg() != 2 {
		return usagef("channel poison show: needs an address and a file name; `netsky channel poison ls` lists both")
	}
	id, err := agent.ParseArgAddress(c.Args().Get(0))
	if err != nil {
		return err
	}
	b, err := a.bus()
	if err != nil {
		return err
	}
	list, err := b.List(id, bus.Poison, 0)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(e bus.Entry) bool { return e.Name == c.Args().Get(1) })
	if i < 0 {
		return fmt.Errorf("%s: no poisoned file %s", id, c.Args().Get(1))
	}
	h, err := a.home()
	if err != nil {
		return err
	}
	data, err := h.ReadFile(home.Mailbox(id)+"/"+string(bus.Poison)+"/"+list[i].Name, 1<<20)
	if err != nil {
		return err
	}
	a.print("%s", list[i].Why)
	if now := poisonNow(b, list[i]); now != "" {
		a.print("It was %s", now)
	}
	if place := list[i].Origin; place != "" {
		a.print("It was found in the %s of %s.", place, id)
	}
	a.print("%s", data)
	return nil
}
