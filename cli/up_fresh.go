package cli

import (
	"context"
	"errors"
	"fmt"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/codex"
	"netsky/spawn"
	"netsky/spawn/claude"
)

// endForFresh ends an agent whose next start is to be a clean one, once nothing
// stands in the way of that start.
func (a *app) endForFresh(ctx context.Context, l *spawn.Launcher, id, self agent.ID) error {
	list, err := l.Inspect(ctx)
	if err != nil {
		return err
	}
	if st := list.Find(id); st.State != agent.Down && st.Pane() != "" {
		_, err = l.Down(ctx, spawn.DownOptions{
			Agents: []agent.ID{id}, By: string(self), Keep: a.keepRunning(l.Home), Report: a.freshReport(st),
		})
		if err == nil && ctx.Err() != nil {
			err = fmt.Errorf("%s: ended, and not started again: %w", id, ctx.Err())
		}
		if err != nil {
			return err
		}
	}
	return forget(l.Home, id)
}

// freshReport tells why the ending of an agent takes its time, and how not to wait.
func (a *app) freshReport(st spawn.Status) func(spawn.DownProgress) {
	return func(p spawn.DownProgress) {
		switch {
		case p.Step == spawn.DownAsked && st.State == agent.Busy:
			a.warn("%s is busy; waiting up to %v for its running turn to end (`netsky down %s --force` in another terminal ends it at once)",
				p.What, spawn.DownWithin, p.What)
		case p.Step == spawn.DownTimeout:
			a.warn("%s: no answer within %v; ending it", p.What, p.After)
		case p.Step == spawn.DownUnasked:
			a.warn("%s: could not be asked (%v); ending it", p.What, p.Err)
		case p.Step == spawn.DownWarning:
			a.warn("%s: %v", orAll(p.What), p.Err)
		}
	}
}

// forget removes what names the agent's conversation, whatever it ran on.
func forget(h home.Dir, id agent.ID) error {
	return errors.Join(h.Remove(codex.StateFile(id)), claude.Forget(h, id))
}
