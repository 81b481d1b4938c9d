package live

import (
	"context"
	"time"

	"netsky/agent"
)

// followAgents publishes how the agents are, and what waits, until ctx ends.
func (b *Broadcaster) followAgents(ctx context.Context, l *look) {
	tick := time.NewTicker(b.o.Poll)
	defer tick.Stop()
	known := map[agent.ID]Agent{}
	for {
		known = b.agentsPass(ctx, l, known)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// agentsPass publishes the agents that have changed since known, and returns how
// they are.
func (b *Broadcaster) agentsPass(ctx context.Context, l *look, known map[agent.ID]Agent) map[agent.ID]Agent {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	list, err := b.o.Agents.Agents(ctx)
	switch {
	case ctx.Err() != nil && err != nil:
		return known
	case err != nil:
		b.put(l, keyAgents, map[string]string{"error": err.Error()})
	default:
		b.put(l, keyAgents, nil)
		now := make(map[agent.ID]Agent, len(list))
		for _, a := range list {
			if was, ok := known[a.ID]; !ok || was != a {
				b.put(l, keyAgent+string(a.ID), a)
			}
			now[a.ID] = a
		}
		for id := range known {
			if _, ok := now[id]; !ok {
				b.put(l, keyAgent+string(id), nil)
			}
		}
		known = now
	}
	if waiting, err := b.o.Approvals(); err == nil {
		b.put(l, keyApprovals, waiting)
	}
	return known
}
