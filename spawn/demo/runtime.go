package demo

import (
	"context"
	"time"

	"netsky/agent"
	"netsky/bus"
)

// A Runtime starts agents without a model. They run this binary, so nothing can be
// missing.
type Runtime struct {
	Binary string // this netsky, absolute
	Bus    *bus.Bus
}

// Name returns "demo".
func (Runtime) Name() string { return "demo" }

// Check returns nil: nothing can prevent a start.
func (Runtime) Check(context.Context, agent.Launch) error { return nil }

// Account names the account that all demos share.
func (Runtime) Account(agent.Launch) (name string, changed time.Time) { return account, time.Time{} }

// Prepare sets the launch's program.
func (r Runtime) Prepare(_ context.Context, l *agent.Launch) error {
	l.Argv = []string{r.Binary, "demo", "serve", string(l.Agent)}
	return nil
}

// Message returns the id of the message that the agent works on, "" if there is none.
func (r Runtime) Message(id agent.ID, _ string) string {
	list, err := r.Bus.List(id, bus.Claimed, 1)
	if err != nil || len(list) == 0 || list[0].Err != nil {
		return ""
	}
	return list[0].Envelope.ID
}
