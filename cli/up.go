package cli

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/daemon"
	"netsky/spawn"
	"netsky/store"
)

func (a *app) upCommand() *cli.Command {
	return &cli.Command{
		Name:      "up",
		Usage:     "start agents: agent0, N clones and agentinfinity, or those you name",
		ArgsUsage: "[N|AGENT…] [OBJECTIVE]",
		Description: "N is the number of clones, agent1 to agentN; without it, `clones` of netsky.toml (2). With names, only those agents\n" +
			"are started. What is up stays as it is, a dead agent is replaced, and nothing is ever stopped. The daemon and the\n" +
			"ticker, which starts it again, come with them. An OBJECTIVE is a text in quotes with a space in it, or that of\n" +
			"--objective; it becomes the first message of agent0, or of the one agent that is named.\n" +
			"One line an agent reports how far it has come: ready, or failed with what its pane shows.\n" +
			"More than 50 clones are started only after a question, or with --yes, and 60 agents at a time.",
		Flags: startFlags(
			&cli.BoolFlag{Name: "no-attach", Usage: "stay here instead of going to agent0's pane"},
			&cli.StringFlag{Name: "objective", Usage: "`TEXT` is the first message"},
		),
		Action: func(c *cli.Context) error {
			if err := a.notForClones("up"); err != nil {
				return err
			}
			u, err := a.upArgs(c)
			if err != nil {
				return err
			}
			if u.named {
				return a.up(c, u.agents, u.objective, false)
			}
			ids := []agent.ID{agent.Root}
			for i := 1; i <= u.clones; i++ {
				ids = append(ids, agent.Clone(i))
			}
			return a.up(c, append(ids, agent.Infinity), u.objective, true)
		},
	}
}

func (a *app) agentCommand() *cli.Command {
	return &cli.Command{
		Name:      "agent",
		Usage:     "start one agent",
		ArgsUsage: "N|infinity",
		Description: "Starts agentN if it is not up. With --fresh one that is up is ended first, and the new one starts with a clean\n" +
			"conversation. Nothing is ended unless the new one can be started; a running turn is waited for, up to 60 s.",
		Flags: startFlags(
			&cli.BoolFlag{Name: "fresh", Usage: "end it first if it is up, and forget its conversation"},
			&cli.StringFlag{Name: "objective", Usage: "`TEXT` is its first message"},
		),
		Action: func(c *cli.Context) error {
			if err := a.notForClones("agent"); err != nil {
				return err
			}
			id, err := oneAgent(c, "one agent: 3, agent3 or infinity; a text for it goes behind --objective")
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

// stayedUp are those of the agents that an up has found up, and left as they were.
func stayedUp(states spawn.Statuses, ends []spawn.Progress) (list spawn.Statuses) {
	for _, p := range ends {
		if p.Step == spawn.StepAlready {
			list = append(list, states.Find(p.Agent))
		}
	}
	return list
}

// up brings the agents up and tells of it; whole also attaches and explains.
func (a *app) up(c *cli.Context, ids []agent.ID, objective string, whole bool) error {
	ctx := c.Context
	self, err := a.self()
	if err != nil {
		return err
	}
	h, err := a.madeHome()
	if err != nil {
		return err
	}
	la, err := launchBefore(h, self)
	if err != nil {
		return err
	}
	if self.IsAgent() && len(la.Env) > 0 {
		// What an agent starts inherits what the agent did, and not what its
		// runtime has put into the environment of its tools.
		a.environ = la.Env
	}
	l, err := a.launcher()
	if err != nil {
		return err
	}
	if err := a.chooseDir(l, ids, c.String("dir")); err != nil {
		return err
	}
	plans, why, err := a.plans(ctx, l, ids, c.String("type"), c.String("dir"))
	if err != nil {
		return err
	}
	if c.String("dir") != "" { // also for agents that are up: no hint ends them for a directory that can't be worked in
		if err := spawn.CheckDir(plans[0].Dir); err != nil {
			return exitError{exitUsage, fmt.Errorf("--dir: %w; nothing was started or ended", err)}
		}
	}
	a.tellWhere(l, plans, c.String("dir"))
	plans[0].Objective = objective
	// Named before anything runs: the daemon is not started for an up that can't be.
	var ended []agent.ID // before it is started
	if c.Bool("fresh") {
		ended = ids
	}
	states, err := l.Check(ctx, plans, ended...)
	if err != nil {
		if _, up := runningElsewhere(plans, states, c.String("type")); len(up) > 0 {
			a.warn("%v", disobeyedType(up, c.String("type"), c.String("dir")))
		}
		return err
	}
	setup, err := a.tmuxSetup()
	if err != nil {
		a.warn("%v; tmux is started without it", err)
	}
	rep := newUpReport(a, plans, c.Bool("json"))
	plans, misplaced := runningElsewhere(plans, states, c.String("type"))
	disobeyed := cmp.Or(disobeyedType(misplaced, c.String("type"), c.String("dir")), disobeyedDir(plans, states, c.String("dir")))
	unsent := objective != "" && len(misplaced) > 0 && misplaced[0].Agent == ids[0]
	if len(plans) == 0 {
		stayed := rep.stayed(misplaced)
		if unsent {
			a.warn("the objective was not sent")
		}
		pong, _ := daemon.Ping(ctx, h) // none if it does not answer
		return cmp.Or(rep.finish(h, pong, stayed), disobeyed)
	}
	said, err := a.consents(h, toStart(plans, states), self, c.Bool("yes"))
	if err != nil {
		return err
	}
	if len(said) > 0 { // with the answer something else may stand in the way
		if _, err := l.Check(ctx, plans, ended...); err != nil {
			return err
		}
	}
	if err := a.agreeToMany(toStart(plans, states), c.Bool("yes")); err != nil {
		return err
	}
	if err := a.recordConsents(h, said); err != nil {
		return err
	}
	a.tellLeftOut(l, toStart(plans, states))
	for _, id := range ended {
		if err := a.endForFresh(ctx, l, id, self); err != nil {
			return err
		}
	}
	var (
		pong   daemon.Pong
		derr   error // of the daemon
		stayed []spawn.Progress
	)
	begin := func() error { // as long as no `down --all` can end it
		if err := h.SetDesired(agent.DaemonName, true, string(self)); err != nil {
			return err
		}
		var started bool
		pong, started, derr = a.startDaemon(ctx, h, l.Binary)
		rep.daemon(pong, started, derr)
		stayed = rep.stayed(misplaced)
		return nil
	}
	before := l.Unproved()
	ends, err := l.Up(ctx, spawn.UpOptions{
		Plans: plans, Ticker: true, By: string(self), Report: rep.progress, Setup: setup, Begin: begin,
	})
	rep.close()
	if err != nil {
		if !slices.ContainsFunc(ends, func(p spawn.Progress) bool { return p.Step == spawn.StepReady || p.Step == spawn.StepSlow }) {
			if len(ends) > 0 {
				err = cmp.Or(rep.finish(h, pong, append(stayed, ends...)), err)
			}
			return err
		}
		a.complain(err) // some of them were started
	}
	a.tellCarried(l.Unproved(), before)
	for _, n := range buildNotes(stayedUp(states, ends)) {
		a.warn("%s", n)
	}
	if derr == nil {
		derr = stillWanted(h)
	}
	if derr == nil {
		derr = daemon.Wake(ctx, h)
	}
	if unsent { // it would be a turn on what it was not meant for
		a.warn("the objective was not sent")
	} else {
		if err := a.sendObjective(c, l, ids[0], objective, self); err != nil {
			return err
		}
	}
	if err := rep.finish(h, pong, append(stayed, ends...)); err != nil {
		return err
	}
	if !c.Bool("json") {
		for _, d := range rep.dialogs(append(stayed, ends...)) {
			if d.Decidable || len(d.Agents) > 1 {
				a.warn("%s", d.words())
			}
		}
	}
	if derr != nil {
		return exitError{exitPartly, fmt.Errorf("%w: the agents are up; outboxes and history wait for the daemon", derr)}
	}
	if failed := upFailed(ends); failed != nil {
		if disobeyed != nil {
			a.complain(disobeyed)
		}
		return failed
	}
	if disobeyed != nil || c.Bool("json") {
		return disobeyed
	}
	if why != nil {
		started := slices.ContainsFunc(ends, func(p spawn.Progress) bool { return p.Step == spawn.StepReady })
		switch {
		case started && whole:
			a.explainDemo(len(plans), why)
		case started && why != errRanOnDemo:
			for _, id := range ids {
				a.warn("%s runs on demo, a program without a model: %s", id, firstLine(why.Error()))
			}
		}
		return nil
	}
	if !whole {
		return nil
	}
	_, tty := terminal(a.out)
	if tty && !c.Bool("no-attach") && a.getenv("TMUX") == "" && self == agent.Owner {
		return a.attach(ctx, l.Tmux, agent.Root, false)
	}
	return nil
}

// toStart are the plans of agents that are not up: only they need somebody's word.
func toStart(plans []spawn.Plan, states spawn.Statuses) []spawn.Plan {
	return slices.DeleteFunc(slices.Clone(plans), func(p spawn.Plan) bool { return states.Find(p.Agent).Alive() })
}

func upFailed(ends []spawn.Progress) error {
	failed, slow := 0, 0
	for _, e := range ends {
		switch e.Step {
		case spawn.StepFailed:
			failed++
		case spawn.StepSlow, spawn.StepUnknown:
			slow++
		}
	}
	switch {
	case failed == len(ends) && failed > 0:
		return exitError{exitFailed, errTold}
	case failed > 0 || slow > 0:
		return exitError{exitPartly, errTold}
	}
	return nil
}

func (a *app) sendObjective(c *cli.Context, l *spawn.Launcher, id agent.ID, text string, from agent.ID) error {
	if text == "" {
		return nil
	}
	r, err := l.Bus.Send(c.Context, envelope.Envelope{From: from, To: id, Text: text, Via: "cli", Time: time.Now()})
	if err != nil {
		return fmt.Errorf("objective: not sent: %w", err)
	}
	if !c.Bool("json") {
		a.warn("sent %s to %s: %s", r.ID, id, firstLine(text))
	}
	// On record also when the agent was up already and nothing of it was started.
	l.Journal.Record(c.Context, store.UpsertActor{ID: id, Role: id.Role(), Objective: text, Desired: store.DesiredUp})
	return nil
}

func (a *app) explainDemo(n int, why error) {
	fmt.Fprint(a.err, "netsky: ", a.called(fmt.Sprintf(`these %d run on demo (%s): programs without a model
that show their mail, answer it and obey a few commands (/delegate, /busy, /crash …), at no cost.
agent0 is the manager, agent1… are its workers, agentinfinity is there for repairs.
  netsky ask agent0 "/delegate agent1 what is your name?"    hand work on and get the answer
  netsky attach agent1                                       look at its pane; C-b d leaves
  netsky status                                              how everything is
`, n, envelope.Plain(firstLine(why.Error())))))
}
