package cli

import (
	"context"
	"errors"

	"netsky/agent"
	"netsky/spawn/approve"
	"netsky/spawn/needs"
)

// decide answers the dialog at which an agent waits, and with all the same dialog of
// other agents.
func (a *app) decide(ctx context.Context, id agent.ID, allow, all bool) error {
	l, err := a.launcher()
	if err != nil {
		return err
	}
	v, err := approve.Decide(ctx, l, a.planner(l).Runtimes(), id, allow, all, func(id agent.ID, d agent.Dialog) {
		a.print("%s: %s: %s: %s", approve.Verdict(allow), id, d.Name, d.Text)
	})
	if err != nil {
		return err
	}
	for _, id := range v.Differs {
		a.warn("%s: waits at a different dialog, which was not answered", id)
	}
	if len(v.Others) > 0 {
		a.warn("%s: waiting at the same dialog; `netsky approve %s --all-same` answers all", needs.Names(v.Others), v.Others[0])
	}
	err = errors.Join(v.Failed...)
	if err != nil && len(v.Given) > 0 {
		return exitError{exitPartly, err}
	}
	return err
}
