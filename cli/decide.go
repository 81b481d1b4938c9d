package cli

import (
	"context"
	"errors"

	"netsky/agent"
	"netsky/cli/overview"
	"netsky/spawn/approve"
)

// decide gives the owner's answer to the dialog at which an agent waits, and with
// all to the same one of others.
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
		a.warn("%s: waits, but not at that dialog: nothing was pressed there", id)
	}
	if len(v.Others) > 0 {
		a.warn("%s: the same dialog waits; `netsky approve %s --all-same` answers all", overview.Names(v.Others), v.Others[0])
	}
	err = errors.Join(v.Failed...)
	if err != nil && len(v.Given) > 0 {
		return exitError{exitPartly, err}
	}
	return err
}
