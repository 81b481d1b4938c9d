package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/cli/view"
	"netsky/config"
	"netsky/fleet"
	"netsky/spawn"
)

func (a fleetVerbs) downCommand() *cli.Command {
	return &cli.Command{
		Name:      "down",
		Usage:     "stop agent0 and the clones",
		ArgsUsage: "[AGENT…]",
		Description: "Asks each agent to finish its running turn, waits up to 45 s for that (60 s for one that does not respond), then ends\n" +
			"them with all their processes.\n" +
			"agentinfinity, the ticker and the daemon stay up unless you use --all. If you name agents, only those are ended:\n" +
			"`netsky down 2` ends agent2, while `netsky up 2` starts two clones. Agents of another host of your team are named by\n" +
			"their addresses, as agent3@build1.\n" +
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

func (a fleetVerbs) down(c *cli.Context) error {
	if err := a.may("down"); err != nil {
		return err
	}
	host, ids, err := aimed(a).agentsAt(c)
	if err != nil {
		return err
	}
	req := fleet.DownRequest{Agents: ids, Force: c.Bool("force"), All: c.Bool("all"), Verify: c.Bool("verify")}
	if host != "" {
		return there[any](a.app, c, host, "down", req, nil)
	}
	if h, err := a.home(); err == nil {
		if _, err := os.Stat(h.Root()); errors.Is(err, fs.ErrNotExist) {
			a.print("nothing was running: there is no %s", tilde(a.app, h.Root()))
			return nil
		}
	}
	l, err := a.launcher()
	if err != nil {
		// A broken netsky.toml must not keep agents running: ended on the
		// server that is ours without it.
		if l, err = a.launcherWithout(err, req.Force && req.All); err != nil {
			return err
		}
	}
	a.tellNumber(c.Context, l, c.Args().Slice(), ids)
	rep := &view.Down{Printer: a.printer(c.Bool("json"))}
	f := a.fleetOf(l)
	f.UI = ui{a.app, rep}
	r, err := f.Down(c.Context, req)
	if req.All {
		hostVerbs(a).hangUp(c.Context, l.Home)
	}
	if jerr := rep.Finish(r.Ended); jerr != nil {
		return jerr
	}
	if stopped := new(spawn.InterruptedError); errors.As(err, &stopped) {
		err = exitError{128 + int(endedBy(c.Context)), err}
	}
	return err
}

func agentArgs(c *cli.Context) ([]agent.ID, error) {
	return agentArgsBy(c, agent.ParseAgent)
}

// agentArgsBy is agentArgs for a verb that takes other names, too.
func agentArgsBy(c *cli.Context, parse func(string) (agent.ID, error)) ([]agent.ID, error) {
	var ids []agent.ID
	for _, arg := range c.Args().Slice() {
		id, err := parse(arg)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// tellNumber says which agent a number names, where it could be read as how many: as in `netsky up 2`.
func (a fleetVerbs) tellNumber(ctx context.Context, l *spawn.Launcher, words []string, ids []agent.ID) {
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
	if up > 1 && list.Find(ids[0]).Alive() {
		a.warn("%s is %s, one of %d clones that are up; only `netsky up N` takes a number of clones", words[0], ids[0], up)
	}
}

// launcherWithout returns the launcher of a home whose configuration can't be read.
func (a fleetVerbs) launcherWithout(why error, allowed bool) (*spawn.Launcher, error) {
	h, herr := a.home()
	if herr != nil || !allowed {
		return nil, why
	}
	a.warn("%v; continuing without it", why)
	return fleet.NewLauncher(h, config.Default(), a.environ)
}
