package daemon

import (
	"context"
	"fmt"

	"netsky/bus/courier"
	"netsky/dashboard/live"
	"netsky/home"
	"netsky/spawn"
	"netsky/spawn/pane"
	"netsky/store"
	"netsky/watch"
)

// agents presents the agents to the dashboard.
type agents struct {
	watchdog *watch.Watchdog
	runtimes func() map[string]spawn.Runtime
	home     home.Dir
}

// Agents returns their state.
func (a agents) Agents(ctx context.Context) ([]live.Agent, error) {
	list, err := a.watchdog.Statuses(ctx)
	return a.views(list), err
}

func (a agents) views(list spawn.Statuses) []live.Agent {
	runtimes := a.runtimes()
	out := make([]live.Agent, 0, len(list))
	for _, st := range list {
		if st.Forgotten {
			continue
		}
		v := live.Agent{
			ID: st.Agent, State: st.State, Evidence: st.Evidence, Detail: st.Detail, Runtime: st.Runtime, Model: st.Model,
			Dir: st.Dir, Start: st.Start, PID: st.PID, Wanted: st.Wanted,
			Inbox: st.Inbox, Claimed: st.Claimed, Outbox: st.Outbox, Poison: st.Poison, Restart: st.Restart,
			Deaf: st.Deaf(), Decidable: st.Asks() && pane.Decidable(runtimes[st.Runtime], st.Dialog),
		}
		if st.State == st.Report.State {
			v.Fault = st.Report.Fault
		}
		if n, until := courier.Holding(a.home, st.Agent); n > 0 {
			v.Held = fmt.Sprintf("%d %s", n, courier.HeldWords(until))
		}
		if !st.Since.IsZero() {
			v.Since = store.At(st.Since)
		}
		out = append(out, v)
	}
	return out
}
