package cli

import (
	"cmp"
	"fmt"
	"strings"

	"netsky/spawn"
)

// runningElsewhere takes out of the plans those of agents that are up on another
// runtime than --type names, and returns how they are. Up ends no agent.
func runningElsewhere(plans []spawn.Plan, states spawn.Statuses, runtime string) (rest []spawn.Plan, up []spawn.Status) {
	for _, p := range plans {
		if st := states.Find(p.Agent); runtime != "" && runtime != "auto" && st.Alive() && st.Runtime != p.Runtime.Name() {
			up = append(up, st)
		} else {
			rest = append(rest, p)
		}
	}
	return rest, up
}

// onOtherRuntime is the error of a --type that agents which are up can't obey.
type onOtherRuntime struct {
	agents []spawn.Status
	again  string // the options that bring them up as was wanted
}

func disobeyedType(up []spawn.Status, runtime, dir string) error {
	if len(up) == 0 {
		return nil
	}
	e := onOtherRuntime{agents: up, again: "--type " + runtime}
	if dir != "" {
		e.again += " --dir " + shellWord(dir)
	}
	return exitError{exitPartly, e}
}

func (e onOtherRuntime) Error() string {
	var on []string // the runtimes, in the order of the agents
	who := make(map[string][]string)
	for _, st := range e.agents {
		r := cmp.Or(st.Runtime, "an unknown runtime")
		if who[r] == nil {
			on = append(on, r)
		}
		who[r] = append(who[r], string(st.Agent))
	}
	var parts []string
	for _, r := range on {
		verb := "runs"
		if len(who[r]) > 1 {
			verb = "run"
		}
		parts = append(parts, fmt.Sprintf("%s %s on %s", strings.Join(who[r], ", "), verb, r))
	}
	return strings.Join(parts, "; ") + ": left so, as up ends no agent"
}

// names are the agents as arguments.
func (e onOtherRuntime) names() string {
	var list []string
	for _, st := range e.agents {
		list = append(list, string(st.Agent))
	}
	return strings.Join(list, " ")
}
