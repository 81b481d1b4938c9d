package cli

import (
	"strings"

	"netsky/cli/plan"
	"netsky/spawn"
)

// tellLeftOut names the person's MCP servers that agents on Claude Code do not
// get, once, and again when that has changed.
func (a *app) tellLeftOut(l *spawn.Launcher, plans []spawn.Plan) {
	names, err := plan.NewlyLeftOut(l, plans)
	if len(names) > 0 {
		a.warn("your MCP servers that agents on Claude Code do not get: %s (`mcp` under [claude] in netsky.toml lets them through)", strings.Join(names, ", "))
	}
	if err != nil {
		a.warn("%v", err) // it will be said again
	}
}
