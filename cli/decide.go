package cli

import (
	"context"
	"errors"

	"netsky/agent"
	"netsky/attention"
	"netsky/attention/approve"
)

// decide answers the dialog at which agents wait.
func (a *app) decide(ctx context.Context, c approve.Choice) error {
	l, err := a.launcher()
	if err != nil {
		return err
	}
	c.By = byTerminal
	c.Given = func(id agent.ID, d agent.Dialog) {
		a.print("%s: %s: %s: %s", approve.Verdict(c.Allow), id, d.Name, d.Text)
	}
	v, err := a.desk(l).Decide(ctx, l, a.planner(l).Runtimes(), c)
	if err != nil {
		return err
	}
	for _, id := range v.Differs {
		a.warn("%s: waits at a different dialog, which was not answered", id)
	}
	if len(v.Others) > 0 {
		a.warn("%s: waiting at the same dialog; `netsky approve %s --all-same` answers all", attention.Names(v.Others), v.Others[0])
	}
	err = errors.Join(v.Failed...)
	if err != nil && len(v.Given) > 0 {
		return exitError{exitPartly, err}
	}
	return err
}
