package plan

import (
	"cmp"
	"fmt"
	"strings"

	"netsky/agent"
	"netsky/internal/advice"
	"netsky/spawn"
)

// RunningElsewhere splits off the plans of agents that are up on another runtime than
// --type names. Up ends no agent.
func RunningElsewhere(plans []spawn.Plan, states spawn.Statuses, runtime string) (rest, up []spawn.Plan) {
	for _, p := range plans {
		if st := states.Find(p.Agent); runtime != "" && runtime != "auto" && st.Alive() && st.Runtime != p.Runtime.Name() {
			up = append(up, p)
		} else {
			rest = append(rest, p)
		}
	}
	return rest, up
}

// DisobeyedType returns an error if agents are up on another runtime than requested.
// blocked is what would keep them from starting on that, or nil.
func DisobeyedType(up []spawn.Plan, states spawn.Statuses, w Wish, blocked error) error {
	if len(up) == 0 {
		return nil
	}
	var names, on, parts []string // the runtimes in the order of the agents
	who := make(map[string][]string)
	for _, p := range up {
		r := cmp.Or(states.Find(p.Agent).Runtime, "an unknown runtime")
		if who[r] == nil {
			on = append(on, r)
		}
		who[r], names = append(who[r], string(p.Agent)), append(names, string(p.Agent))
	}
	for _, r := range on {
		parts = append(parts, fmt.Sprintf("%s %s on %s", strings.Join(who[r], ", "), verb(who[r], "run"), r))
	}
	err := fmt.Errorf("%s: left unchanged, because up ends no agent", strings.Join(parts, "; "))
	if blocked != nil {
		return fmt.Errorf("%w; and they can't be started on %s: %w", err, w.Runtime, blocked)
	}
	again := "--type " + w.Runtime
	if w.Dir != "" {
		again += " --dir " + advice.Word(w.Dir)
	}
	return advice.With(err, "`netsky down %s && netsky up %[1]s %s` restarts them that way", strings.Join(names, " "), again)
}

// DisobeyedDir returns an error if agents are up in another directory than --dir names. bases are the
// owner's directories for where they work; nil without that flag.
func DisobeyedDir(plans []spawn.Plan, states spawn.Statuses, bases map[agent.ID]string) error {
	var names []string
	var is, wanted string // of the first of them
	for _, p := range plans {
		st := states.Find(p.Agent)
		if bases == nil || !st.Alive() || st.Dir == "" || st.Dir == p.Dir || bases[p.Agent] == p.Dir {
			continue
		}
		if names = append(names, string(p.Agent)); len(names) == 1 {
			is, wanted = st.Dir, p.Dir
		}
	}
	if len(names) == 0 {
		return nil
	}
	return advice.With(fmt.Errorf("%s %s in %s: left unchanged, because up ends no agent", strings.Join(names, ", "), verb(names, "work"), is),
		"`netsky down %s && netsky up %[1]s --dir %s` restarts them there", strings.Join(names, " "), advice.Word(wanted))
}

func verb(who []string, does string) string {
	if len(who) == 1 {
		return does + "s"
	}
	return does
}
