package cli

import (
	"context"

	"netsky/attention"
	"netsky/attention/approve"
	"netsky/fleet"
)

// decide gives the owner's answer.
func (a *app) decide(ctx context.Context, r fleet.DecideRequest) error {
	f, err := a.fleet()
	if err != nil {
		return err
	}
	r.By = fleet.ByTerminal
	v, err := fleet.Answers{Fleet: f}.Decide(ctx, r)
	verdict := approve.Verdict(!r.Deny)
	switch d := v.Dialog; {
	case v.Budget != "":
		a.print("%s", v.Budget)
	case d != nil:
		for _, id := range d.Given {
			a.print("%s: %s: %s: %s", verdict, id, d.Dialog.Name, d.Dialog.Text)
		}
		for _, id := range d.Differs {
			a.warn("%s: waits at a different dialog, which was not answered", id)
		}
		if len(d.Others) > 0 {
			a.warn("%s: waiting at the same dialog; `netsky approve %s --all-same` answers all", attention.Names(d.Others), d.Others[0])
		}
	case v.Request != nil && err == nil:
		a.print("%s: %s: %s", verdict, v.Request.Agent, requestLines(*v.Request))
	}
	return err
}
