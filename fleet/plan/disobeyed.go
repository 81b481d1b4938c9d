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
// --type names, and returns their states. Up ends no agent.
func RunningElsewhere(plans []spawn.Plan, states spawn.Statuses, runtime string) (rest []spawn.Plan, up []spawn.Status) {
	for _, p := range plans {
		if st := states.Find(p.Agent); runtime != "" && runtime != "auto" && st.Alive() && st.Runtime != p.Runtime.Name() {
			up = append(up, st)
		} else {
			rest = append(rest, p)
		}
	}
	return rest, up
}

// onOtherRuntime is returned when agents are up on another runtime than --type names.
type onOtherRuntime struct{ agents []spawn.Status }

// DisobeyedType returns an error if agents are up on another runtime than requested.
// blocked is what would keep them from starting on that, or nil.
func DisobeyedType(up []spawn.Status, w Wish, blocked error) error {
	if len(up) == 0 {
		return nil
	}
	if blocked != nil {
		return fmt.Errorf("%w; and they can't be started on %s: %w", onOtherRuntime{up}, w.Runtime, blocked)
	}
	var list []string
	for _, st := range up {
		list = append(list, string(st.Agent))
	}
	names, again := strings.Join(list, " "), "--type "+w.Runtime
	if w.Dir != "" {
		again += " --dir " + advice.Word(w.Dir)
	}
	return advice.With(onOtherRuntime{up}, "`netsky down %s && netsky up %[1]s %s` restarts them that way", names, again)
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
	return strings.Join(parts, "; ") + ": left unchanged, because up ends no agent"
}

// inOtherDir is returned when agents are up in another directory than --dir names.
type inOtherDir struct {
	agents []string
	dir    string // where the first of them works
}

// DisobeyedDir returns an error if agents are up in another directory than --dir names.
func DisobeyedDir(plans []spawn.Plan, states spawn.Statuses, flag string, base func(agent.ID, string) string) error {
	if flag == "" {
		return nil
	}
	e, wanted := inOtherDir{}, ""
	for _, p := range plans {
		st := states.Find(p.Agent)
		if !st.Alive() || st.Dir == "" || st.Dir == p.Dir || base(p.Agent, st.Dir) == p.Dir {
			continue
		}
		if e.agents = append(e.agents, string(p.Agent)); len(e.agents) == 1 {
			e.dir, wanted = st.Dir, p.Dir
		}
	}
	if len(e.agents) == 0 {
		return nil
	}
	return advice.With(e, "`netsky down %s && netsky up %[1]s --dir %s` restarts them there", strings.Join(e.agents, " "), advice.Word(wanted))
}

func (e inOtherDir) Error() string {
	verb := "works"
	if len(e.agents) > 1 {
		verb = "work"
	}
	return fmt.Sprintf("%s %s in %s: left unchanged, because up ends no agent", strings.Join(e.agents, ", "), verb, e.dir)
}
