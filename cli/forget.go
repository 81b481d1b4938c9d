package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/fleet"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/words"
	"netsky/spawn"
)

func (a *app) forgetCommand() *cli.Command {
	return &cli.Command{
		Name:      "forget",
		Usage:     "remove an agent that is down from status",
		ArgsUsage: "[AGENT…]",
		Description: "Removes the agent's line from `netsky status`, and nothing else: its mail, records, prompt and workspace stay, and\n" +
			"unread mail is named. The line comes back when the agent is started or a new message waits for it.\n\n" +
			"If the netsky process that watched over an agent was killed, the agent may have left a process that netsky can't find:\n" +
			"`down --verify` and `uninstall --purge` then report \"not proved\" until no process is left that could be its own, the\n" +
			"machine is restarted, or you confirm here that you have looked. For such an agent, forget also lists the processes that may be\n" +
			"its own, and asks; if you say yes, it removes that note and logs your answer. It ends no process. With --unproved it does only\n" +
			"that: for the agents you name, or else for all that have such a note.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "unproved", Usage: "only remove the note that something of a killed agent may still run"},
			&cli.BoolFlag{Name: "all", Usage: "list also the processes that show no sign of netsky"},
			&cli.BoolFlag{Name: "yes", Usage: "do not ask; you have looked, and nothing of it is left"},
		},
		Action: a.forget,
	}
}

func (a *app) forget(c *cli.Context) error {
	if err := a.may("forget"); err != nil {
		return err
	}
	ids, err := agentArgs(c)
	if err != nil {
		return err
	}
	only := c.Bool("unproved")
	if len(ids) == 0 && !only {
		return usagef("forget: needs an agent that is down; `netsky status` lists them")
	}
	self, err := a.self()
	if err != nil {
		return err
	}
	if only {
		if err := a.may("forget --unproved"); err != nil {
			return err
		}
	}
	l, err := a.launcher()
	if err != nil {
		return err
	}
	notes, err := a.unproved(c.Context, l, ids)
	if err != nil {
		return err
	}
	if !proc.Reaps && !only { // on this system every ended agent has such a note
		notes = nil
	}
	switch {
	case len(notes) > 0 && self == agent.Owner:
		if err := a.takeWord(c.Context, l, notes, c.Bool("all"), c.Bool("yes")); err != nil {
			return err
		}
	case len(notes) > 0:
		for _, r := range notes {
			a.warn("not proved: %s", r.What)
		}
		a.warn("the note stays: only the owner can remove it")
	case only:
		a.print("nothing to forget: there is no such note")
	}
	if only {
		return nil
	}
	return a.offStatus(c.Context, l, ids, self, notes)
}

// unproved returns the notes about these agents, or about all if none are named,
// after checking whether they still apply.
func (a *app) unproved(ctx context.Context, l *spawn.Launcher, ids []agent.ID) ([]spawn.Remnant, error) {
	of := func() []spawn.Remnant {
		return slices.DeleteFunc(l.Unproved(), func(r spawn.Remnant) bool { return len(ids) > 0 && !slices.Contains(ids, r.Agent) })
	}
	before := of()
	if len(before) == 0 { // and nothing is created in a home that does not exist
		return nil, nil
	}
	if err := l.Prove(ctx); err != nil {
		return nil, err
	}
	rest := of()
	if len(rest) < len(before) {
		a.print("%d of %d unproved ends are proved now: no process is left that could belong to them", len(before)-len(rest), len(before))
	}
	return rest, nil
}

// offStatus removes the agents from status that are down. One that is not is an
// error, unless a note about it was removed.
func (a *app) offStatus(ctx context.Context, l *spawn.Launcher, ids []agent.ID, self agent.ID, removed []spawn.Remnant) error {
	list, err := l.Inspect(ctx)
	if err != nil { // an agent may run unseen
		return err
	}
	var errs []error
	done := 0
	for _, id := range ids {
		st := list.Find(id)
		switch {
		case !l.Bus.Exists(id):
			errs = append(errs, fmt.Errorf("%s: was never started", id))
			continue
		case st.State != agent.Down || st.Wanted:
			if self == agent.Owner && slices.ContainsFunc(removed, func(r spawn.Remnant) bool { return r.Agent == id }) {
				a.print("%s: stays in status, because it is %s; `netsky down %s` ends it", id, st.State, id)
				done++
				continue
			}
			errs = append(errs, fmt.Errorf("%s: is %s; `netsky down %s` ends it", id, st.State, id))
			continue
		}
		if err := home.Desired(l.Home).Forget(id, string(self), st.Waiting()); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", id, err))
			continue
		}
		done++
		kept := "its mail stays in " + tilde(a, l.Home.Path(home.Mailbox(id)))
		if n := st.Waiting(); n > 0 {
			kept += fmt.Sprintf(" (%d unread)", n)
		}
		if work := l.Home.Path(home.Workspace(id)); exists(work) {
			kept += ", its work in " + tilde(a, work)
		}
		a.print("%s: forgotten; %s; `netsky up %s` brings it back", id, kept, id)
	}
	err = errors.Join(errs...)
	if err != nil && done > 0 {
		return exitError{exitPartly, err}
	}
	return err
}

// takeWord prints what is not proved and the processes that could be left, and
// removes the notes if the owner confirms that none is.
func (a *app) takeWord(ctx context.Context, l *spawn.Launcher, notes []spawn.Remnant, all, yes bool) error {
	for _, r := range notes {
		a.print("not proved: %s", r.What)
	}
	list, err := l.Suspects(notes)
	switch {
	case err != nil:
		a.warn("can't list the processes that could be left: %v", err)
	case len(list) == 0:
		a.print("no process is left that could belong to it")
	default:
		a.listSuspects(l, notes, list, all)
	}
	if !yes {
		ok, err := a.confirm("forget", "Have you looked, and is nothing of it left?")
		if err != nil {
			return err
		}
		if !ok {
			return exitError{exitFailed, errTold}
		}
	}
	if err := l.TakeWord(ctx, notes, agent.Owner); err != nil {
		return err
	}
	for _, id := range fleet.AgentsOf(notes) {
		a.print("%s: recorded that nothing of it is left, as you confirmed; `netsky log` shows it", id)
	}
	return nil
}

// listSuspects lists the processes that could be of unproved starts, and counts those that show no sign of it.
func (a *app) listSuspects(l *spawn.Launcher, notes []spawn.Remnant, list []proc.Process, all bool) {
	var rest []proc.Process
	if !all {
		list, rest = l.Likely(notes, list)
	}
	var lines []string
	others := 0
	for _, p := range list {
		if home, ok := p.Env("NETSKY_HOME"); ok && l.Home.IsOther(home) {
			others++
			continue
		}
		began, err := p.Began()
		command := p.Command()
		if err != nil || command == "" { // gone meanwhile
			continue
		}
		lines = append(lines, fmt.Sprintf("  %7d  %s  %s", p.PID, began.Format(time.DateTime), words.Brief(command, 100)))
	}
	if len(lines) > 0 {
		a.print("these processes started since then and could belong to it:")
	} else {
		a.print("no process that started since then shows a sign of it")
	}
	for _, line := range words.First(lines) {
		a.print("%s", line)
	}
	if others > 0 {
		a.print("  and %d that belong to another netsky home, by the NETSKY_HOME in their environment", others)
	}
	if len(rest) > 0 {
		a.print("  and %d that show no sign of it, by their environment or control group; --all lists them", len(rest))
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
