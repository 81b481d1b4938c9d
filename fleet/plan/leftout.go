package plan

import (
	"maps"
	"slices"
	"strings"

	"netsky/agent"
	"netsky/claude"
	"netsky/spawn"
)

// leftOutFile holds the servers that were last named as left out.
const leftOutFile = "state/claude/left-out"

// NewlyLeftOut returns the owner's MCP servers that agents on Claude Code do not get, if
// the list has changed since the last call. After an error the next call returns it again.
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
