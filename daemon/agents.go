package daemon

import (
	"context"
	"fmt"

	"netsky/attention"
	"netsky/bus/courier"
	"netsky/dashboard/live"
	"netsky/home"
	"netsky/spawn"
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
		n := attention.Of(st, runtimes[st.Runtime])
		v := live.Agent{
			ID: st.Agent, State: st.State, Since: n.Since, Evidence: st.Evidence, Detail: st.Detail, Runtime: st.Runtime, Model: st.Model,
			Dir: st.Dir, Start: st.Start, PID: st.PID, Wanted: st.Wanted,
			Inbox: st.Inbox, Claimed: st.Claimed, Outbox: st.Outbox, Poison: st.Poison, Restart: st.Restart,
			Fault: n.Fault, Deaf: n.Deaf, Decidable: n.Decidable,
		}
		if n, until := courier.ReadLedger(a.home, st.Agent).Holding(); n > 0 {
			v.Held = fmt.Sprintf("%d %s", n, courier.HeldWords(until))
		}
		out = append(out, v)
	}
	return out
}
