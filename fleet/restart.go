package fleet

import (
	"context"
	"errors"
	"fmt"

	"netsky/agent"
	"netsky/daemon"
	"netsky/fleet/plan"
	"netsky/internal/advice"
	"netsky/internal/execx"
	"netsky/internal/words"
	"netsky/watch"
	"netsky/watch/restart"
)

// A RestartRequest asks for agents to be ended and started again on their conversations: those that
// are named, else all that are up.
type RestartRequest struct {
	Agents  []agent.ID `json:"agents,omitempty"`
	Force   bool       `json:"force,omitempty"`   // running turns are cut off
	Handoff *string    `json:"handoff,omitempty"` // sent to each agent before its new start
}

// Restart has the daemon restart agents, once nothing prevents their new starts, and reports how that
// goes: with [restart.ErrInterrupted], ctx has ended and the daemon continues. An agent that asks for its
// own restart gets a *[PartlyError] at once, as its turn has to end. A crash leaves what package restart
// says.
func (f *Fleet) Restart(ctx context.Context, q RestartRequest) (done restart.View, err error) {
	if err := f.May("restart"); err != nil {
		return done, err
	}
	r := restart.Request{By: f.Actor, Force: q.Force}
	if q.Handoff != nil {
		if r.Handoff = *q.Handoff; words.Blank(r.Handoff) || len(r.Handoff) > restart.MaxHandoff {
			return done, usagef("restart: a handoff has 1 to %d bytes of text; this one has %d", restart.MaxHandoff, len(r.Handoff))
		}
	}
	if !f.Actor.IsAgent() {
		r.Environ = execx.Inherited(f.Environ)
	}
	runtimes := f.Planner().Runtimes()
	err = restart.Check(ctx, restart.Options{
		Launcher: f.Launcher, Plan: Revival{f}.PlanAgain,
		Conversation: func(id agent.ID) (string, error) { return plan.Conversation(f.Home, id) },
		Barred:       func(id agent.ID) string { return watch.Barred(f.Home, runtimes, id) },
	}, q.Agents, &r)
	if err == nil {
		err = Daemon{f}.WantDaemon(ctx)
	}
	if err == nil {
		err = restart.Submit(f.Home, &r)
	}
	if err != nil {
		return done, fmt.Errorf("nothing was ended: %w", err)
	}
	if err := daemon.Wake(ctx, f.Home); err != nil {
		f.warn("%v", err)
	}
	if r.Names(f.Actor) {
		return done, partly(advice.With(fmt.Errorf("%s is restarted once this turn has ended, and cut off after a minute: end it now", f.Actor), "`netsky log` then shows how it went"))
	}
	r, err = restart.Follow(ctx, f.Home, r.ID, func(line string) { f.UI.Step(Step{Line: line}) })
	if errors.Is(err, restart.ErrPartly) {
		err = partly(err)
	}
	return r.View(), err
}
