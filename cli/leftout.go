package cli

import (
	"maps"
	"slices"
	"strings"

	"netsky/agent"
	"netsky/spawn"
	"netsky/spawn/claude"
)

// leftOutFile holds what was last said of servers that are left out.
const leftOutFile = "state/claude/left-out"

// tellLeftOut names the person's MCP servers that agents on Claude Code do not
// get, once, and again when that has changed.
func (a *app) tellLeftOut(l *spawn.Launcher, plans []spawn.Plan) {
	told := make(map[string]bool)
	for _, p := range plans {
		r, ok := p.Runtime.(*claude.Runtime)
		if !ok {
			continue
		}
		for _, name := range r.LeftOut(agent.Launch{Agent: p.Agent, Dir: p.Dir, Env: l.Environ}) {
			told[name] = true
		}
	}
	names := strings.Join(slices.Sorted(maps.Keys(told)), ", ")
	said, err := l.Home.ReadFile(leftOutFile, 1<<20)
	if names == "" || err == nil && string(said) == names {
		return
	}
	a.warn("your MCP servers that agents on Claude Code do not get: %s (`mcp` under [claude] in netsky.toml lets them through)", names)
	if err := l.Home.WriteFile(leftOutFile, []byte(names), false); err != nil {
		a.warn("%v", err) // it will be said again
	}
}
