package cli

import (
	"errors"
	"fmt"

	"netsky/bus/envelope"
	"netsky/fleet"
	"netsky/fleet/plan"
	"netsky/internal/words"
	"netsky/spawn"
)

// tellDemo explains why agents run on demo.
func (a fleetVerbs) tellDemo(r fleet.StartResult, whole bool) {
	var on []string // demo, and ready now
	demos, all := 0, 0
	for _, s := range r.Agents {
		if s.Step == spawn.StepAlready && s.Err != nil { // on another runtime than requested
			continue
		}
		all++
		if s.As.Runtime != "demo" {
			continue
		}
		demos++
		if s.Step == spawn.StepReady {
			on = append(on, string(s.Agent))
		}
	}
	switch {
	case len(on) == 0, !whole && errors.Is(r.Demo, plan.ErrRanOnDemo):
	case whole && demos == all:
		a.explainDemo(demos, r.Demo)
	default:
		run := map[bool]string{true: "runs", false: "run"}[len(on) == 1]
		a.warn("%s %s on demo, a program without a model: %s", words.Names(on), run, words.FirstLine(r.Demo.Error()))
	}
}

func (a fleetVerbs) explainDemo(n int, why error) {
	fmt.Fprint(a.err, "netsky: ", a.called(fmt.Sprintf(`these %d are demo agents (%s):
small programs without a model that show their mail, answer it and obey a few commands, at no cost.
agent0 is the manager, agent1… are the workers, agentinfinity does repairs. Try:
  netsky ask agent0 "/delegate agent1 what is your name?"    have agent0 ask agent1, and print the answer
  netsky attach agent1                                       look at its pane; C-b d leaves
  netsky status                                              print the state of each agent
`, n, envelope.Plain(words.FirstLine(why.Error())))))
}
