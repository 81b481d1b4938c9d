package cli

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/cli/view"
	"netsky/fleet/plan"
	"netsky/home"
	"netsky/internal/execx"
	"netsky/spawn"
	"netsky/work/check"
	"netsky/work/tree"
)

// place puts the agents that are about to start where they work: clones in worktrees of their own.
func (u *upRun) place(starting []spawn.Plan) error {
	p := u.a.planner(u.l)
	u.places = p.Places(u.c.Context, starting, u.c.Bool("here"))
	if err := u.a.agreeToSetup(u.l.Home, u.places, u.self, u.c.Bool("yes")); err != nil {
		return err
	}
	return u.settle(starting, func(id agent.ID) bool { return slices.Contains(u.ended, id) })
}

// slowPlaces is the time after which the owner is told what takes so long.
const slowPlaces = 3 * time.Second

// settle makes the worktrees, and has the plans checked again where the agents work now.
func (u *upRun) settle(starting []spawn.Plan, running func(agent.ID) bool) error {
	slow := time.AfterFunc(slowPlaces, func() { u.a.warn("git is writing the worktrees' files; a large repository takes a while") })
	defer slow.Stop()
	if err := u.a.planner(u.l).Make(u.c.Context, starting, u.places, running); err != nil {
		return fmt.Errorf("nothing was started: %w", err)
	}
	for i, one := range u.plans {
		if at := slices.IndexFunc(starting, func(p spawn.Plan) bool { return p.Agent == one.Agent }); at >= 0 {
			u.plans[i] = starting[at]
			u.rep.Placed(starting[at], u.places[at])
		}
	}
	return u.l.Recheck(u.c.Context, u.prep, starting)
}

// agreeToSetup has the owner agree to the setup command, if a worktree needs it and the owner has
// not agreed to exactly this text.
func (a *app) agreeToSetup(h home.Dir, places []plan.Place, self agent.ID, yes bool) error {
	setup := check.Command{What: "setup", Text: a.config.Work.Setup}
	if setup.Text == "" || !slices.ContainsFunc(places, func(at plan.Place) bool { return needsSetup(h, at, setup) }) {
		return nil
	}
	return a.agreeTo(h, setup, "is run in each new worktree, before its agent starts", self, yes)
}

func needsSetup(h home.Dir, at plan.Place, setup check.Command) bool {
	if !at.Apart {
		return false
	}
	w, err := tree.Load(h, at.Agent)
	return err != nil || w.Setup != setup.Digest()
}

// agreeTo has the owner agree to a command of [work]: on the terminal, by --yes, or before. An
// agent can't.
func (a *app) agreeTo(h home.Dir, c check.Command, when string, self agent.ID, yes bool) error {
	if ok, err := c.Agreed(h); ok || err != nil {
		return err
	}
	_, in := view.Width(a.in)
	_, out := view.Width(a.err)
	about := fmt.Sprintf("`%s` under [work] in %s", c.What, tilde(a, h.Path(home.ConfigFile)))
	switch {
	case self.IsAgent():
		return usagef("%s: the owner has not agreed to this text yet, and only the owner can: %s", about, view.Brief(c.Text, 200))
	case yes:
	case !in || !out:
		return usagef("%s: you have not agreed to this text yet: %s\nrun this on a terminal, where you are asked, or with --yes", about, view.Brief(c.Text, 200))
	default:
		fmt.Fprintf(a.err, "%s %s. It may do what you may do:\n\n%s\n\nRun this text from now on? [y/N] ", about, when, "    "+strings.ReplaceAll(envelope.Plain(c.Text), "\n", "\n    "))
		line, err := bufio.NewReader(a.in).ReadString('\n')
		if answer := strings.ToLower(strings.TrimSpace(line)); err != nil || answer != "y" && answer != "yes" {
			return usagef("%s: not agreed to; nothing was done", about)
		}
	}
	a.warn("%s is run from now on as it is; a changed text asks again: %s", about, view.Brief(c.Text, 200))
	return c.Agree(h)
}

// setUp runs the setup command in the worktrees that need it, two at a time. An agent whose setup
// fails starts all the same: it may be able to mend it.
func (u *upRun) setUp(ctx context.Context) {
	h, work := u.l.Home, u.a.config.Work
	setup := check.Command{What: "setup", Text: work.Setup}
	if setup.Text == "" {
		return
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, 2)
	for _, at := range u.places {
		if !needsSetup(h, at, setup) {
			continue
		}
		env := u.plans[slices.IndexFunc(u.plans, func(p spawn.Plan) bool { return p.Agent == at.Agent })].Environ
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			u.a.warn("%s: setup: %s", at.Agent, view.Brief(setup.Text, 100))
			log := home.LogDir + "/setup-" + string(at.Agent) + ".log"
			r, err := setup.Run(ctx, check.Options{Home: h, Dir: at.Placed.Dir, Log: log, Env: env, Extra: portOf(env), Within: work.SetupTime.Duration})
			switch {
			case err != nil:
				u.a.warn("%s: setup: %v", at.Agent, err)
			case !r.OK():
				u.a.warn("%s: setup: %v; it starts all the same, and its next start runs it again: %s", at.Agent, r, tilde(u.a, h.Path(log)))
			default:
				if err := tree.SetUp(h, at.Agent, setup.Digest()); err != nil {
					u.a.warn("%s: setup: %v; its next start runs it again", at.Agent, err)
				}
			}
		})
	}
	wg.Wait()
}

// portOf returns the agent's port, as a variable.
func portOf(env []string) []string {
	if port := execx.Value(env, plan.PortVariable); port != "" {
		return []string{plan.PortVariable + "=" + port}
	}
	return nil
}

// tellPlaces says where the clones work, what is not there, and how to have it otherwise.
func (u *upRun) tellPlaces() {
	type group struct {
		agents []string
		at     plan.Place
		fresh  bool
	}
	var groups []group
	for _, at := range u.places {
		for _, n := range at.Notes {
			u.a.warn("%s: %s", at.Agent, n)
		}
		if !at.Apart && at.Why == "" {
			continue
		}
		i := slices.IndexFunc(groups, func(g group) bool { return g.at.Dir == at.Dir && g.at.Why == at.Why })
		if i < 0 {
			groups, i = append(groups, group{at: at}), len(groups)
		}
		groups[i].agents = append(groups[i].agents, string(at.Agent))
		groups[i].fresh = groups[i].fresh || at.Fresh
	}
	for _, g := range groups {
		who, dir := view.Names(g.agents), tilde(u.a, g.at.Dir)
		works, own := "works", "a git worktree and on a branch of its own"
		if len(g.agents) > 1 {
			works, own = "work", "git worktrees and on branches of their own"
		}
		if g.at.Why != "" {
			u.a.warn("%s %s in %s itself: %s", who, works, dir, g.at.Why)
			continue
		}
		if g.fresh {
			u.a.warn("%s %s in %s, apart from %s; --here has them work there, `worktrees = false` under [work] in netsky.toml does so for good", who, works, own, dir)
		}
		switch left := g.at.Left; {
		case left == 1:
			u.a.warn("a file in %s is not committed, so it is not in there", dir)
		case left > 1:
			u.a.warn("%d files in %s are not committed, so they are not in there", left, dir)
		}
	}
}

// tellBehind says which agents begin a new conversation because they worked in another directory before.
func (u *upRun) tellBehind() {
	for _, at := range u.places { // of those that start
		i := slices.IndexFunc(u.plans, func(p spawn.Plan) bool { return p.Agent == at.Agent })
		if session, dir := plan.Behind(u.l.Home, u.plans[i]); dir != "" {
			u.a.warn("%s begins a new conversation: its last, %s, is of %s, and Claude Code continues one only where it began; `claude --resume %s` there shows it",
				at.Agent, session, tilde(u.a, dir), session)
		}
	}
}

// ownersEnviron returns the environment that what self starts inherits. If self is an agent, that is the one
// it was started with itself: without what its program adds for its tools, and what it has changed there.
func (a *app) ownersEnviron(h home.Dir, self agent.ID) ([]string, error) {
	if !self.IsAgent() {
		return a.environ, nil
	}
	la, err := plan.Before(h, self)
	if err != nil || len(la.Env) == 0 {
		return a.environ, err
	}
	return la.Env, nil
}
