package fleet

import (
	"context"
	"sync"

	"netsky/agent"
	"netsky/config"
	"netsky/fleet/plan"
	"netsky/home"
	"netsky/spawn"
)

// anew returns the fleet with netsky.toml as it is now, for starting an agent again: a mistake that
// can't be about how agents run keeps none down.
func (f Revival) anew() (*Fleet, error) {
	c, harm, err := config.Load(f.Home)
	if err != nil && harm > config.Ignored {
		return nil, &plan.UsageError{Err: err}
	}
	return f.rebuilt(&c, f.Environ, f.UI)
}

// PlanAgain plans a start of the agent as of now, as it was started last, with that environment;
// nil is the one of its last start.
func (f Revival) PlanAgain(ctx context.Context, id agent.ID, environ []string) (spawn.Plan, error) {
	now, err := f.anew()
	if err != nil {
		return spawn.Plan{}, err
	}
	before, err := f.Home.LoadLaunch(id)
	if err != nil {
		return spawn.Plan{}, err
	}
	p := now.Planner()
	plans, _, err := p.Plans(ctx, []agent.ID{id}, plan.Wish{Runtime: before.Runtime, Dir: before.Dir})
	if err != nil {
		return spawn.Plan{}, err
	}
	if plans[0].Environ = environ; environ == nil {
		plans[0].Environ = before.Env
	}
	return plans[0], p.Again(ctx, &plans[0])
}

// SetupAgain returns the configuration of a tmux server as of now. A mistake in it keeps no agent
// down.
func (f Revival) SetupAgain() []string {
	now, err := f.anew()
	if err != nil {
		now = f.Fleet
	}
	lines, _ := Daemon{now}.tmuxSetup()
	return lines
}

// RuntimesNow returns what returns the runtimes that netsky.toml has at the time. A mistake in it
// leaves those that it had before.
func (f Revival) RuntimesNow() func() map[string]spawn.Runtime {
	all, at := f.Planner().Runtimes(), f.Home.Mark(home.ConfigFile)
	var mu sync.Mutex
	return func() map[string]spawn.Runtime {
		mu.Lock()
		defer mu.Unlock()
		now := f.Home.Mark(home.ConfigFile)
		if at.Same(now) {
			return all
		}
		at = now
		if fresh, err := f.anew(); err == nil {
			all = fresh.Planner().Runtimes()
		}
		return all
	}
}
