package daemon

import (
	"context"

	"netsky/home"
	"netsky/spawn"
	"netsky/view"
	"netsky/watch"
)

// agents presents the agents to the dashboard.
type agents struct {
	watchdog *watch.Watchdog
	runtimes func() map[string]spawn.Runtime
	home     home.Dir
}

// Agents returns their state.
func (a agents) Agents(ctx context.Context) ([]view.Agent, error) {
	list, err := a.watchdog.Statuses(ctx)
	return view.All(a.home, list, a.runtimes()), err
}
