package cli

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/cli/view"
	"netsky/daemon"
	"netsky/fleet/plan"
	"netsky/internal/execx"
	"netsky/spawn"
	"netsky/store"
	"netsky/watch/backoff"
)

func (a *app) upCommand() *cli.Command {
	return &cli.Command{
		Name:      "up",
		Usage:     "start agent0, N clones (the workers) and agentinfinity, or the agents you name",
		ArgsUsage: "[N|AGENT…] [OBJECTIVE]",
		Description: "N is the number of clones, agent1 to agentN (default: `clones` in netsky.toml, 2). If you name agents, only those are\n" +
			"started. Running agents stay as they are, dead ones are replaced, and nothing is stopped. OBJECTIVE is the first\n" +
			"message to agent0, or to the one agent you name: a quoted text with a space in it, or the text of --objective.\n\n" +
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
		Description: "An agent that is up stays as it is. With --fresh it has up to 60 s to finish its running turn, is ended, and starts\n" +
			"with a new conversation; if it could not be started again, it is not ended.",
		Flags: startFlags(
			&cli.BoolFlag{Name: "fresh", Usage: "end it first if it is up, and start a new conversation"},
			&cli.StringFlag{Name: "objective", Usage: "send `TEXT` as its first message"},
		),
		Action: func(c *cli.Context) error {
			if err := a.notForClones("agent"); err != nil {
				return err
			}
			id, err := oneAgent(c, "one agent: 3, agent3 or infinity; use --objective for a text")
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

// stayedUp returns the agents that were already up and were left as they are.
func stayedUp(states spawn.Statuses, ends []spawn.Progress) (list spawn.Statuses) {
	for _, p := range ends {
		if p.Step == spawn.StepAlready {
			list = append(list, states.Find(p.Agent))
		}
	}
	return list
}

// An upRun is one `netsky up` or `netsky agent`.
type upRun struct {
	a     *app
	c     *cli.Context
	l     *spawn.Launcher
	self  agent.ID
	ids   []agent.ID
	whole bool // it also attaches and explains

	elsewhere bool // agent0 works in another directory than the caller's
	wish      plan.Wish

	plans     []spawn.Plan
	prep      *spawn.Preparation
	why       error        // with demo chosen: what stands in the way of a model
	places    []plan.Place // of those to start
	ended     []agent.ID
	objective string
	misplaced []spawn.Status // up on another runtime than requested
	disobeyed error          // options that can't be applied to agents that are up

	rep    *view.Up
	pong   daemon.Pong
	derr   error // of the daemon
	stayed []spawn.Progress
}

// up starts the agents and reports it; whole also attaches and explains.
func (a *app) up(c *cli.Context, ids []agent.ID, objective string, whole bool) error {
	u := &upRun{a: a, c: c, ids: ids, whole: whole, objective: objective, wish: plan.Wish{Runtime: c.String("type"), Dir: c.String("dir")}}
	if c.Bool("fresh") {
		u.ended = ids
	}
	if err := u.plan(); err != nil {
		return err
	}
	if err := u.prepare(); err != nil {
		return err
	}
	if u.self == agent.Owner {
		a.tryLogins(c.Context, u.l.Home)
	}
	if len(u.plans) == 0 {
		stayed := u.rep.Stayed(u.misplaced)
		u.tellUnsent()
		pong, _ := daemon.Ping(c.Context, u.l.Home) // none if it does not answer
		return cmp.Or(u.rep.Finish(u.l.Home, pong, stayed), u.disobeyed)
	}
	if err := u.agree(); err != nil {
		return err
	}
	ends, err := u.start()
	if err != nil {
		return err
	}
	return u.tell(ends)
}

// plan decides what is started, on which runtime and where.
func (u *upRun) plan() error {
	a := u.a
	var err error
	if u.self, err = a.self(); err != nil {
		return err
	}
	h, err := a.madeHome()
	if err != nil {
		return err
	}
	if a.environ, err = a.ownersEnviron(h, u.self); err != nil {
		return err
	}
	if u.l, err = a.launcher(); err != nil {
		return err
	}
	p := a.planner(u.l)
	if err := a.chooseDir(p, u.ids, u.wish.Dir); err != nil {
		return err
	}
	if u.plans, u.why, err = p.Plans(u.c.Context, u.ids, u.wish); err != nil {
		return err
	}
	if u.wish.Dir != "" { // also for agents that are up: no advice may end them for an unusable directory
		if err := execx.CheckDir(u.plans[0].Dir); err != nil {
			return exitError{exitUsage, fmt.Errorf("--dir: %w; nothing was started or ended", err)}
		}
	}
	u.elsewhere = a.tellWhere(p, u.plans, u.wish.Dir)
	u.plans[0].Objective = u.objective
	return nil
}

// prepare finds what prevents the up before anything is started.
func (u *upRun) prepare() (err error) {
	all := u.plans
	u.prep, err = u.l.Prepare(u.c.Context, all, u.ended...)
	u.plans, u.misplaced = plan.RunningElsewhere(all, u.prep.States, u.wish.Runtime)
	var blocked error
	if i := slices.IndexFunc(all, func(p spawn.Plan) bool { return len(u.misplaced) > 0 && p.Agent == u.misplaced[0].Agent }); i >= 0 && err == nil {
		blocked = u.l.Recheck(u.c.Context, u.prep, all[i:i+1])
	}
	disobeyed := plan.DisobeyedType(u.misplaced, u.wish, blocked)
	if err != nil {
		if disobeyed != nil {
			u.a.warn("%v", disobeyed)
		}
		return err
	}
	u.rep = view.NewUp(u.a.printer(u.c.Bool("json")), u.a.planner(u.l).Runtimes(), func(runtime string) string { return u.a.config.May(runtime) }, all)
	if disobeyed == nil {
		disobeyed = plan.DisobeyedDir(u.plans, u.prep.States, u.wish.Dir, u.a.planner(u.l).Base)
	}
	if disobeyed != nil {
		u.disobeyed = exitError{exitPartly, disobeyed}
	}
	return nil
}

// agree gets the owner's consent where it is needed, and ends agents that start fresh.
func (u *upRun) agree() error {
	a, h := u.a, u.l.Home
	starting := toStart(u.plans, u.prep.States)
	if err := u.served(starting); err != nil {
		return err
	}
	said, err := a.consents(h, starting, u.self, u.c.Bool("yes"))
	if err != nil {
		return err
	}
	for _, s := range said { // the answer may bring up another obstacle
		of := slices.DeleteFunc(slices.Clone(starting), func(p spawn.Plan) bool { return p.Runtime.Name() != s.w.Runtime })
		if err := u.l.Recheck(u.c.Context, u.prep, of); err != nil {
			return err
		}
	}
	if err := a.agreeToMany(starting, u.c.Bool("yes")); err != nil {
		return err
	}
	if err := a.recordConsents(h, said); err != nil {
		return err
	}
	a.tellLeftOut(u.l, starting)
	if err := u.place(starting); err != nil {
		return err
	}
	for _, id := range u.ended {
		if err := a.endForFresh(u.c.Context, u.l, id, u.self); err != nil {
			return err
		}
	}
	if len(u.ended) > 0 { // what it was doing may be finished now
		if err := u.settle(starting, func(agent.ID) bool { return false }); err != nil {
			return err
		}
	}
	u.tellPlaces()
	u.tellBehind()
	u.setUp(u.c.Context)
	return nil
}

// start starts the daemon and the agents. It fails if no agent has come up.
func (u *upRun) start() ([]spawn.Progress, error) {
	a, l, ctx := u.a, u.l, u.c.Context
	setup, err := a.tmuxSetup()
	if err != nil {
		a.warn("%v; starting tmux without it", err)
	}
	begin := func() error { // while no `down --all` can end it
		if err := l.Home.SetDesired(agent.DaemonName, true, string(u.self)); err != nil {
			return err
		}
		for _, line := range backoff.Clear(l.Home, u.ids...) {
			a.warn("%s", line)
		}
		var started daemon.Started
		u.pong, started, u.derr = a.startDaemon(ctx, l.Home, l.Binary)
		u.rep.Daemon(u.pong, started, u.derr)
		u.stayed = u.rep.Stayed(u.misplaced)
		return nil
	}
	before := l.Unproved()
	ends, err := l.Up(ctx, spawn.UpOptions{
		Plans: u.plans, Prepared: u.prep, Ticker: true, By: string(u.self), Report: u.rep.Progress, Setup: setup, Begin: begin,
	})
	if err != nil {
		if !slices.ContainsFunc(ends, func(p spawn.Progress) bool { return p.Step == spawn.StepReady || p.Step == spawn.StepSlow }) {
			if len(ends) > 0 {
				err = cmp.Or(u.rep.Finish(l.Home, u.pong, append(u.stayed, ends...)), err)
			}
			return ends, err
		}
		a.complain(err) // some of them were started
	}
	a.tellCarried(l.Unproved(), before)
	for _, n := range append(view.BuildNotes(stayedUp(u.prep.States, ends), Version), view.UntestedStarts(l.Home, ends)...) {
		a.warn("%s", n)
	}
	if u.derr == nil {
		u.derr = stillWanted(l.Home)
	}
	if u.derr == nil {
		u.derr = daemon.Wake(ctx, l.Home)
	}
	if u.derr == nil {
		a.tellUnread(ctx, l.Home)
	}
	return ends, nil
}

// tell sends the objective and reports how the up ended and what to do next.
func (u *upRun) tell(ends []spawn.Progress) error {
	a, asJSON := u.a, u.c.Bool("json")
	u.tellLost(ends)
	if !u.tellUnsent() {
		if err := a.sendObjective(u.c, u.l, u.ids[0], u.objective, u.self); err != nil {
			return err
		}
	}
	all := append(u.stayed, ends...)
	if err := u.rep.Finish(u.l.Home, u.pong, all); err != nil {
		return err
	}
	if !asJSON {
		for _, d := range u.rep.Dialogs(all) {
			if d.Decidable || len(d.Agents) > 1 {
				a.warn("%s", view.DialogWords(d))
			}
		}
	}
	if u.derr != nil {
		return exitError{exitPartly, fmt.Errorf("%w: the agents are up; outboxes and the records of deaths wait for the daemon", u.derr)}
	}
	if failed := upFailed(ends); failed != nil {
		if u.disobeyed != nil {
			a.complain(u.disobeyed)
		}
		return failed
	}
	if u.disobeyed != nil || asJSON {
		return u.disobeyed
	}
	if u.why != nil {
		u.tellDemo(ends)
		return nil
	}
	_, tty := view.Width(a.out)
	if u.whole && tty && !u.c.Bool("no-attach") && a.getenv("TMUX") == "" && u.self == agent.Owner {
		if u.elsewhere {
			a.warn("not attached, as agent0 works in another directory: `netsky attach` opens its pane")
			return nil
		}
		return a.attach(u.c.Context, u.l.Tmux, agent.Root, false)
	}
	return nil
}

// toStart returns the plans of agents that are not up: only they need consent.
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
		a.warn("sent %s to %s: %s", r.ID, id, view.FirstLine(text))
	}
	// Recorded here too, as an agent that was already up has had no new start.
	l.Journal.Record(c.Context, store.UpsertActor{ID: id, Role: id.Role(), Objective: text, Desired: store.DesiredUp})
	return nil
}
