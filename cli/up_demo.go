package cli

import (
	"errors"
	"fmt"
	"slices"

	"netsky/bus/envelope"
	"netsky/cli/view"
	"netsky/fleet/plan"
	"netsky/spawn"
)

// tellDemo explains why agents run on demo.
func (u *upRun) tellDemo(ends []spawn.Progress) {
	var on []string // demo, and ready now
	demos := 0
	for _, p := range u.plans {
		if p.Runtime.Name() != "demo" {
			continue
		}
		demos++
		if slices.ContainsFunc(ends, func(e spawn.Progress) bool { return e.Agent == p.Agent && e.Step == spawn.StepReady }) {
			on = append(on, string(p.Agent))
		}
	}
	switch {
	case len(on) == 0, !u.whole && errors.Is(u.why, plan.ErrRanOnDemo):
	case u.whole && demos == len(u.plans):
		u.a.explainDemo(demos, u.why)
	default:
		run := map[bool]string{true: "runs", false: "run"}[len(on) == 1]
		u.a.warn("%s %s on demo, a program without a model: %s", view.Names(on), run, view.FirstLine(u.why.Error()))
	}
}

func (a *app) explainDemo(n int, why error) {
	fmt.Fprint(a.err, "netsky: ", a.called(fmt.Sprintf(`these %d are demo agents (%s):
small programs without a model that show their mail, answer it and obey a few commands, at no cost.
agent0 is the manager, agent1… are the workers, agentinfinity does repairs. Try:
  netsky ask agent0 "/delegate agent1 what is your name?"    have agent0 ask agent1, and print the answer
  netsky attach agent1                                       look at its pane; C-b d leaves
  netsky status                                              print the state of each agent
`, n, envelope.Plain(view.FirstLine(why.Error())))))
}
