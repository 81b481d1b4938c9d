package cli

import (
	"strings"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/cli/overview"
	"netsky/cli/plan"
	"netsky/spawn"
)

// tellLeftOut names the owner's MCP servers that agents on Claude Code do not get:
// once, and again when the list changes.
func (a *app) tellLeftOut(l *spawn.Launcher, plans []spawn.Plan) {
	names, err := plan.NewlyLeftOut(l, plans)
	if len(names) > 0 {
		a.warn("agents on Claude Code do not get these MCP servers of yours: %s (name them in `mcp` under [claude] in netsky.toml to allow them)", strings.Join(names, ", "))
	}
	if err != nil {
		a.warn("%v", err) // they will be named again
	}
}

// untested names what has just been started on another release of its program than the one
// that netsky was tested with.
func untested(h home.Dir, ends []spawn.Progress) []string {
	var list spawn.Statuses
	for _, p := range ends {
		if la, err := h.LoadLaunch(p.Agent); err == nil && (p.Step == spawn.StepReady || p.Step == spawn.StepSlow) {
			list = append(list, spawn.Status{Agent: p.Agent, State: agent.Starting, Untested: la.Untested})
		}
	}
	return overview.UntestedNotes(list)
}
