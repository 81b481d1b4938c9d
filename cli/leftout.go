package cli

import (
	"strings"

	"netsky/fleet/plan"
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
