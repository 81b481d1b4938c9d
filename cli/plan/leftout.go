package plan

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

// NewlyLeftOut are the person's MCP servers that agents on Claude Code do not get, if they
// are others than when it was asked last. With the error they are named again.
func NewlyLeftOut(l *spawn.Launcher, plans []spawn.Plan) ([]string, error) {
	all := make(map[string]bool)
	for _, p := range plans {
		r, ok := p.Runtime.(*claude.Runtime)
		if !ok {
			continue
		}
		for _, name := range r.LeftOut(agent.Launch{Agent: p.Agent, Dir: p.Dir, Env: l.Environ}) {
			all[name] = true
		}
	}
	names := slices.Sorted(maps.Keys(all))
	text := strings.Join(names, ", ")
	said, err := l.Home.ReadFile(leftOutFile, 1<<20)
	if text == "" || err == nil && string(said) == text {
		return nil, nil
	}
	return names, l.Home.WriteFile(leftOutFile, []byte(text), false)
}
