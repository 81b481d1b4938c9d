package live

import (
	"context"
	"time"

	"netsky/agent"
	"netsky/view"
)

// poll calls pass at once and at every tick, each time with at most readLimit, until
// ctx ends.
func (b *Broadcaster) poll(ctx context.Context, pass func(context.Context)) {
	tick := time.NewTicker(b.o.Poll)
	defer tick.Stop()
	for {
		limited, cancel := context.WithTimeout(ctx, readLimit)
		pass(limited)
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// followAgents publishes the agents' states and the waiting approvals until ctx ends.
func (b *Broadcaster) followAgents(ctx context.Context, l *look) {
	known := map[agent.ID]view.Agent{}
	b.poll(ctx, func(ctx context.Context) {
		list, err := b.o.Agents.Agents(ctx)
		switch {
		case ctx.Err() != nil && err != nil:
			return
		case err != nil:
			b.put(l, keyAgents, map[string]string{"error": err.Error()})
		default:
			b.put(l, keyAgents, nil)
			known = b.putAgents(l, list, known)
		}
		if waiting, err := b.o.Approvals(); err == nil {
			b.put(l, keyApprovals, waiting)
		}
	})
}

// putAgents publishes the agents that differ from the known ones, and returns the list
// by name.
func (b *Broadcaster) putAgents(l *look, list []view.Agent, known map[agent.ID]view.Agent) map[agent.ID]view.Agent {
	now := make(map[agent.ID]view.Agent, len(list))
	for _, a := range list {
		if was, ok := known[a.ID]; !ok || was != a {
			b.put(l, keyAgent+string(a.ID), view.API{Agent: a})
		}
		now[a.ID] = a
	}
	for id := range known {
		if _, ok := now[id]; !ok {
			b.put(l, keyAgent+string(id), nil)
		}
	}
	return now
}
