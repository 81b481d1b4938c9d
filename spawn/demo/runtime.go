package demo

import (
	"context"

	"netsky/agent"
	"netsky/bus"
)

// A Runtime starts agents without a model. They are this binary, so nothing can be
// missing.
type Runtime struct {
	Binary string // this netsky, absolute
	Bus    *bus.Bus
}

// Name is "demo".
func (Runtime) Name() string { return "demo" }

// Check finds nothing in the way.
func (Runtime) Check(context.Context, agent.Launch) error { return nil }

// Prepare puts the program into the launch.
func (r Runtime) Prepare(_ context.Context, l *agent.Launch) error {
	l.Argv = []string{r.Binary, "demo", "serve", string(l.Agent)}
	return nil
}

// Message is the id of the message that the agent is at, "" if there is none.
func (r Runtime) Message(id agent.ID, _ string) string {
	list, err := r.Bus.List(id, bus.Claimed, 1)
	if err != nil || len(list) == 0 || list[0].Err != nil {
		return ""
	}
	return list[0].Envelope.ID
}
