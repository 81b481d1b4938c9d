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

// known returns what returns their state at the watchdog's last look, and the look's number.
func (a agents) known() func(context.Context) ([]view.Agent, uint64, error) {
	var last uint64
	var shown []view.Agent
	return func(ctx context.Context) ([]view.Agent, uint64, error) {
		list, look, err := a.watchdog.Known(ctx)
		if err == nil && look != last {
			shown, last = view.All(a.home, list, a.runtimes()), look
		}
		return shown, last, err
	}
}
