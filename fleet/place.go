package fleet

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"netsky/agent"
	"netsky/fleet/plan"
	"netsky/home"
	"netsky/internal/execx"
	"netsky/internal/words"
	"netsky/spawn"
	"netsky/work/check"
	"netsky/work/tree"
)

// slowPlaces is the time after which the owner is told what takes so long.
const slowPlaces = 3 * time.Second

// settle puts the agents that are about to start where they work: clones in worktrees of their own. What
// is not where it was checked is checked again.
func (s *starter) settle(running func(agent.ID) bool) error {
	slow := time.AfterFunc(slowPlaces, func() { s.warn("git is writing the worktrees' files; a large repository takes a while") })
	defer slow.Stop()
	if err := s.planner.Make(s.ctx, s.starting, s.places, running); err != nil {
		return fmt.Errorf("nothing was started: %w", err)
	}
	var moved []spawn.Plan
	for i, one := range s.starting {
		at := slices.IndexFunc(s.plans, func(p spawn.Plan) bool { return p.Agent == one.Agent })
		s.plans[at] = one
		s.as[one.Agent] = As{Runtime: one.Runtime.Name(), Dir: one.Dir, Place: s.places[i]}
		if s.places[i].Apart {
			moved = append(moved, one)
		}
	}
	return s.Launcher.Recheck(s.ctx, s.prep, moved)
}

func (s *starter) setupCommand() check.Command {
	return check.Command{What: "setup", Text: s.Config.Work.Setup}
}

func (s *starter) needsSetup(at plan.Place, setup check.Command) bool {
	if !at.Apart {
		return false
	}
	w, err := tree.Load(s.Home, at.Agent)
	return err != nil || w.Setup != setup.Digest()
}

// setUp runs the setup command in the worktrees that need it, two at a time. An agent whose setup
// fails starts all the same: it may be able to mend it.
func (s *starter) setUp() {
	setup := s.setupCommand()
	if setup.Text == "" {
		return
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, 2)
	for _, at := range s.places {
		if !s.needsSetup(at, setup) {
			continue
		}
		env := s.plans[slices.IndexFunc(s.plans, func(p spawn.Plan) bool { return p.Agent == at.Agent })].Environ
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			s.setUpOne(at, setup, env)
		})
	}
	wg.Wait()
}

func (s *starter) setUpOne(at plan.Place, setup check.Command, env []string) {
	s.warn("%s: setup: %s", at.Agent, words.Brief(setup.Text, 100))
	log := home.LogDir + "/setup-" + string(at.Agent) + ".log"
	r, err := setup.Run(s.ctx, check.Options{Home: s.Home, Dir: at.Placed.Dir, Log: log, Env: env, Extra: portOf(env), Within: s.Config.Work.SetupTime.Duration})
	switch {
	case err != nil:
		s.warn("%s: setup: %w", at.Agent, err)
	case !r.OK():
		s.warn("%s: setup: %v; it starts all the same, and its next start runs it again: %s", at.Agent, r, s.tilde(s.Home.Path(log)))
	default:
		if err := tree.SetUp(s.Home, at.Agent, setup.Digest()); err != nil {
			s.warn("%s: setup: %w; its next start runs it again", at.Agent, err)
		}
	}
}

// portOf returns the agent's port, as a variable.
func portOf(env []string) []string {
	if port := execx.Value(env, plan.PortVariable); port != "" {
		return []string{plan.PortVariable + "=" + port}
	}
	return nil
}
