package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/cli/view"
	"netsky/config"
	"netsky/daemon"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/spawn"
)

func (a *app) downCommand() *cli.Command {
	return &cli.Command{
		Name:      "down",
		Usage:     "stop agent0 and the clones",
		ArgsUsage: "[AGENT…]",
		Description: "Asks each agent to finish its running turn, waits up to 45 s for that (60 s for one that does not respond), then ends\n" +
			"them with all their processes.\n" +
			"agentinfinity, the ticker and the daemon stay up unless you use --all. If you name agents, only those are ended:\n" +
			"`netsky down 2` ends agent2, while `netsky up 2` starts two clones.\n" +
			"Ctrl-C stops waiting and ends nothing: each agent that was asked still ends after its turn (on Codex or demo after 45 s\n" +
			"at the latest), unless `netsky up` withdraws the request first.\n\n" +
			"No file is removed: mail, records, conversations, prompts and workspaces stay, and `netsky up` continues from there.\n" +
			"A turn that has not finished by then is cut off (with --force, every running turn is): its message goes to the\n" +
			"agent's next start.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "force", Usage: "end them at once, without letting them finish"},
			&cli.BoolFlag{Name: "all", Usage: "also end agentinfinity, the ticker and the daemon"},
			&cli.BoolFlag{Name: "verify", Usage: "prove that nothing of them is still running; exit status 3 if that can't be proved"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
		},
		Action: a.down,
	}
}

func (a *app) down(c *cli.Context) error {
	if err := a.notForClones("down"); err != nil {
		return err
	}
	ids, err := agentArgs(c)
	if err != nil {
		return err
	}
	self, err := a.self()
	if err != nil {
		return err
	}
	force, all := c.Bool("force"), c.Bool("all")
	if h, err := a.home(); err == nil {
		if _, err := os.Stat(h.Root()); errors.Is(err, fs.ErrNotExist) {
			a.print("nothing was running: there is no %s", tilde(a, h.Root()))
			return nil
		}
	}
	if all && len(ids) > 0 {
		return usagef("down: --all means every agent; leave the names out")
	}
	l, err := a.launcher()
	if err != nil {
		// A broken netsky.toml must not keep agents running: ended on the
		// server that is ours without it.
		if l, err = a.launcherWithout(err, force && all); err != nil {
			return err
		}
	}
	ctx := c.Context
	a.tellNumber(ctx, l, c.Args().Slice(), ids)
	rep := &view.Down{Printer: a.printer(c.Bool("json"))}
	o := spawn.DownOptions{
		Agents: ids, Force: force, All: all, By: string(self), Keep: a.keepRunning(l.Home), Report: rep.Progress,
	}
	if all {
		o.Within = a.withDaemon(ctx, l.Home, self, rep)
	}
	never := l.NeverUp(ctx)
	if !never {
		_, err = l.Down(ctx, o)
	}
	if stopped := new(spawn.InterruptedError); errors.As(err, &stopped) {
		rep.Failed = true
		if jerr := rep.Finish(); jerr != nil {
			return jerr
		}
		return exitError{128 + int(endedBy(ctx)), err}
	}
	ctx = context.WithoutCancel(ctx) // what was ended is reported and verified in any case
	if !all && !never {
		if werr := daemon.Wake(ctx, l.Home); werr != nil {
			a.warn("%v", werr)
		}
	}
	var strangers []error
	for _, id := range ids {
		switch {
		case rep.Tried(id) || err != nil: // with an error it is not known
		case !l.Bus.Exists(id):
			strangers = append(strangers, advice.With(fmt.Errorf("%s: was never started", id), "`netsky status` lists the agents"))
		default:
			rep.Say(string(id) + ": was not running")
		}
	}
	rep.Failed = err != nil || len(strangers) > 0
	err = errors.Join(append(strangers, err)...)
	if rep.Ended == 0 && err == nil && len(ids) == 0 {
		rep.Say("nothing was running")
	}
	if c.Bool("verify") {
		err = errors.Join(err, a.verifyDown(ctx, l, rep, ids, all))
	}
	if len(ids) == 0 && !all {
		a.stillUp(ctx, l, rep)
	}
	if jerr := rep.Finish(); jerr != nil {
		return jerr
	}
	if err != nil && (rep.Ended > 0 || errors.Is(err, errUnproved) && !rep.Failed) {
		return exitError{exitPartly, err}
	}
	return err
}

// errUnproved is returned when everything known has been ended, but it can't be
// proved that this is all.
var errUnproved = errors.New("verify: not proved")

// verifyDown prints what is left, or that it is proved that nothing is.
func (a *app) verifyDown(ctx context.Context, l *spawn.Launcher, rep *view.Down, ids []agent.ID, all bool) error {
	left, err := l.Remnants(ctx, a.keepRunning(l.Home)...)
	if err != nil {
		err = fmt.Errorf("verify: %w", err)
	}
	left = view.RemnantsOf(left, ids, all)
	for _, r := range left {
		rep.Say("still there: " + r.What)
	}
	unproved := view.RemnantsOf(l.Unproved(), ids, all)
	for _, r := range unproved {
		rep.Say("not proved: " + r.What)
	}
	if len(unproved) > 0 {
		rep.Say(unprovedHint(unproved))
	}
	strangers := 0
	if all {
		others, serr := l.Strangers(ctx)
		for _, r := range others {
			rep.Say("not proved: " + r.What)
		}
		strangers, err = len(others), errors.Join(err, serr)
	}
	if now := func(r spawn.Remnant) bool { return !r.Earlier }; err == nil && len(left) == 0 && len(unproved) > 0 && !slices.ContainsFunc(unproved, now) {
		rep.Say("their last starts are proved to have ended; this is about earlier ones")
	}
	switch {
	case len(left) > 0:
		rep.Failed = true
		err = errors.Join(err, fmt.Errorf("verify: %d still there", len(left)))
	case len(unproved) > 0, strangers > 0:
		err = errors.Join(err, errUnproved)
	case err != nil:
		rep.Failed = true
		err = errors.Join(err, errUnproved)
	default:
		rep.Say("verified: nothing of them is left")
	}
	return err
}

// unprovedHint returns what can be done about starts whose end is not proved.
func unprovedHint(list []spawn.Remnant) string {
	command := "netsky forget --unproved"
	for _, id := range view.AgentsOf(list) {
		command += " " + string(id)
	}
	return "what detached itself may still run: `" + command + "` lists it, and takes your word that nothing is left"
}

func agentArgs(c *cli.Context) ([]agent.ID, error) {
	var ids []agent.ID
	for _, arg := range c.Args().Slice() {
		id, err := agent.ParseAgent(arg)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// tellNumber says which agent a number names, where it could be read as how many: as in `netsky up 2`.
func (a *app) tellNumber(ctx context.Context, l *spawn.Launcher, words []string, ids []agent.ID) {
	if len(ids) != 1 || !ids[0].IsClone() || words[0] != ids[0].N() {
		return
	}
	list, err := l.Inspect(ctx)
	if err != nil {
		return // what follows reports it
	}
	up := 0
	for _, st := range list {
		if st.Agent.IsClone() && st.Alive() {
			up++
		}
	}
	if up > 1 {
		a.warn("%s is %s, one of %d clones that are up; only `netsky up N` takes a number of clones", words[0], ids[0], up)
	}
}

// launcherWithout returns the launcher of a home whose configuration can't be read.
func (a *app) launcherWithout(why error, allowed bool) (*spawn.Launcher, error) {
	h, herr := a.home()
	if herr != nil || !allowed {
		return nil, why
	}
	a.warn("%v; continuing without it", why)
	return a.launcherFor(h, config.Default())
}

// keepRunning returns the processes that must survive the end of an agent, even one
// that started them: the daemon.
func (a *app) keepRunning(h home.Dir) []int {
	if who, ok := h.LockHolder(agent.DaemonName); ok && who.Named() {
		return []int{who.PID}
	}
	return nil
}

// withDaemon returns a function that also ends the daemon and keeps it ended, while
// no up can start or find it.
func (a *app) withDaemon(ctx context.Context, h home.Dir, by agent.ID, rep *view.Down) func(end func() error) error {
	return func(end func() error) error {
		d, err := h.LoadDesired(agent.DaemonName)
		was := err != nil || d.Up
		var unwritten error
		if was {
			unwritten = h.SetDesired(agent.DaemonName, false, string(by))
		}
		if unwritten != nil { // it is ended all the same
			unwritten = fmt.Errorf("could not save that the daemon stays down; it may be started again: %w", unwritten)
		}
		err = end()
		if stopped := new(spawn.InterruptedError); errors.As(err, &stopped) {
			if was {
				if werr := h.SetDesired(agent.DaemonName, true, string(by)); werr != nil {
					return errors.Join(err, werr)
				}
			}
			rep.Say("daemon: still up, because agents are still working")
			return err
		}
		err = errors.Join(err, unwritten, a.endDaemon(context.WithoutCancel(ctx), h, rep))
		if unwritten == nil {
			err = errors.Join(err, notWantedAgain(h))
		}
		return err
	}
}

func (a *app) endDaemon(ctx context.Context, h home.Dir, rep *view.Down) error {
	ended, err := daemon.Stop(ctx, h)
	if err != nil {
		return err
	}
	if ended {
		rep.Say("daemon: ended")
		rep.Ended++
	}
	return nil
}

// stillUp prints what this down has left running on purpose.
func (a *app) stillUp(ctx context.Context, l *spawn.Launcher, rep *view.Down) {
	var up []string
	list, err := l.Inspect(ctx)
	switch st := list.Find(agent.Infinity); {
	case st.State == agent.Unknown && err != nil:
		if st.Start != "" {
			up = append(up, fmt.Sprintf("perhaps %s (%s)", st.Agent, st.Evidence))
		}
	case st.Alive(): // by its process, where tmux does not answer
		up = append(up, string(st.Agent))
	}
	if on, _ := l.TickerUp(ctx); on {
		up = append(up, spawn.TickerSession)
	}
	if _, err := daemon.Ping(ctx, l.Home); err == nil {
		up = append(up, "daemon")
	}
	if len(up) > 0 {
		rep.Say("still up: " + strings.Join(up, ", ") + " (`netsky down --all` ends them)")
	}
}
