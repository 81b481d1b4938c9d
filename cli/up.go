package cli

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/cli/view"
	"netsky/fleet"
	"netsky/internal/words"
)

// fleetVerbs starts, ends and forgets agents.
type fleetVerbs struct{ *app }

func (a fleetVerbs) upCommand() *cli.Command {
	return &cli.Command{
		Name:      "up",
		Usage:     "start agent0, N clones (the workers) and agentinfinity, or the agents you name",
		ArgsUsage: "[N|AGENT…] [OBJECTIVE]",
		Description: "N is the number of clones, agent1 to agentN (default: `clones` in netsky.toml, 2). If you name agents, only those are\n" +
			"started. Running agents stay as they are, dead ones are replaced, and nothing is stopped. OBJECTIVE is the first\n" +
			"message to agent0, or to the one agent you name: a quoted text with a space in it, or the text of --objective. Agents\n" +
			"that you name may be those of another host of your team, as agent3@build1; what has to be asked is asked only there.\n\n" +
			"For each agent a line reports that it is ready, or that it failed, with the last lines of its pane. On a terminal\n" +
			"outside of tmux, up then attaches to agent0's pane, unless you named agents, agent0 works in another directory than\n" +
			"yours, or netsky fell back on demo; C-b d leaves it. More than 50 clones are started only if you confirm it or use\n" +
			"--yes. up also starts the daemon, which watches the agents and keeps the records, and the ticker, which restarts the\n" +
			"daemon if it dies.",
		Flags: startFlags(
			&cli.BoolFlag{Name: "no-attach", Usage: "do not open agent0's pane on this terminal; netsky attach does that later"},
			&cli.StringFlag{Name: "objective", Usage: "send `TEXT` as the first message"},
		),
		Action: func(c *cli.Context) error {
			if err := a.may("up"); err != nil {
				return err
			}
			host, ids, rest, err := aimed(a).splitAt(c.Args().Slice())
			if err != nil {
				return err
			}
			if host != "" {
				return a.upAt(c, host, ids, rest)
			}
			u, err := a.upArgs(c)
			if err != nil {
				return err
			}
			if u.named {
				return a.up(c, u.agents, u.objective, false)
			}
			ids = []agent.ID{agent.Root}
			for i := 1; i <= u.clones; i++ {
				ids = append(ids, agent.Clone(i))
			}
			return a.up(c, append(ids, agent.Infinity), u.objective, true)
		},
	}
}

// upAt starts agents on another host.
func (a fleetVerbs) upAt(c *cli.Context, host string, ids []agent.ID, rest []string) error {
	objective, err := objectiveFlag(c)
	switch {
	case err != nil:
		return err
	case len(rest) == 1 && objective == "" && len(strings.Fields(rest[0])) > 1:
		objective = rest[0]
	case len(rest) > 0:
		return usagef("up: %q: with agents of %s, only an objective in quotes can be named; `netsky --on %[2]s up` starts a number of clones", rest[0], host)
	}
	if objective != "" && len(ids) > 1 {
		return usagef("up: an objective is for one agent, and %d are named", len(ids))
	}
	return there[any](a.app, c, host, "start", startRequest(c, ids, objective), nil)
}

func (a fleetVerbs) agentCommand() *cli.Command {
	return &cli.Command{
		Name:      "agent",
		Usage:     "start one agent",
		ArgsUsage: "N|infinity",
		Description: "An agent that is up stays as it is. With --fresh it has up to 60 s to finish its running turn, is ended, and starts\n" +
			"with a new conversation; if it could not be started again, it is not ended. infinity@build1 is one of another host.",
		Flags: startFlags(
			&cli.BoolFlag{Name: "fresh", Usage: "end it first if it is up, and start a new conversation"},
			&cli.StringFlag{Name: "objective", Usage: "send `TEXT` as its first message"},
		),
		Action: func(c *cli.Context) error {
			if err := a.may("agent"); err != nil {
				return err
			}
			const want = "one agent: 3, agent3 or infinity; use --objective for a text"
			if host, ids, rest, err := aimed(a).splitAt(c.Args().Slice()); err != nil {
				return err
			} else if host != "" && len(ids)+len(rest) > 1 {
				return usagef("agent: needs %s", want)
			} else if host != "" {
				return a.upAt(c, host, ids, nil)
			}
			id, err := oneAgent(c, want)
			if err != nil {
				return err
			}
			objective, err := objectiveFlag(c)
			if err != nil {
				return err
			}
			return a.up(c, []agent.ID{id}, objective, false)
		},
	}
}

// up starts the agents and reports it; whole also attaches and explains.
func (a fleetVerbs) up(c *cli.Context, ids []agent.ID, objective string, whole bool) error {
	f, r, err := a.start(c.Context, a.printer(c.Bool("json")), startRequest(c, ids, objective))
	if err != nil || c.Bool("json") {
		return err
	}
	switch {
	case r.Demo != nil:
		a.tellDemo(r, whole)
	case whole && f.Actor == agent.Owner && a.mayAttach(c):
		if r.Elsewhere {
			a.warn("not attached, as agent0 works in another directory: `netsky attach` opens its pane")
			return nil
		}
		return paneVerbs(a).attach(c.Context, f.Launcher.Tmux, agent.Root, false)
	}
	return nil
}

// start starts agents, and reports it there.
func (a fleetVerbs) start(ctx context.Context, p view.Printer, req fleet.StartRequest) (*fleet.Fleet, fleet.StartResult, error) {
	rep := view.NewUp(p)
	f, err := a.fleetFor(ui{a.app, rep})
	if err != nil {
		return nil, fleet.StartResult{}, err
	}
	r, err := f.Start(ctx, req)
	for _, n := range append(view.BuildNotes(r.Stayed, Version), view.UntestedStarts(f.Home, r.Agents)...) {
		a.warn("%s", n)
	}
	if r.Woken {
		phoneVerbs(a).tellUnread(ctx, f.Home)
	}
	if len(r.Agents) > 0 {
		if err := rep.Finish(f.Home, r); err != nil {
			return f, r, err
		}
	}
	if p.JSON {
		return f, r, err
	}
	if r.Message != "" {
		a.warn("sent %s to %s: %s", r.Message, req.Agents[0], words.FirstLine(req.Objective))
	}
	for _, d := range r.Dialogs {
		if d.Decidable || len(d.Agents) > 1 {
			a.warn("%s", view.DialogWords(d))
		}
	}
	return f, r, err
}

// startRequest returns what the flags of a verb that starts agents ask for.
func startRequest(c *cli.Context, ids []agent.ID, objective string) fleet.StartRequest {
	return fleet.StartRequest{
		Agents: ids, Runtime: c.String("type"), Dir: c.String("dir"), Here: c.Bool("here"), Fresh: c.Bool("fresh"), Yes: c.Bool("yes"), Objective: objective,
	}
}

// mayAttach reports whether this terminal can show a pane now.
func (a fleetVerbs) mayAttach(c *cli.Context) bool {
	_, tty := view.Width(a.out)
	return tty && !c.Bool("no-attach") && a.getenv("TMUX") == ""
}
