package fleet

import (
	"cmp"
	"context"

	"netsky/agent"
	"netsky/spawn"
)

// A PeekRequest asks for the last lines of an agent's pane.
type PeekRequest struct {
	Agent agent.ID `json:"agent"`
	Lines int      `json:"lines,omitempty"` // 0: 40
}

// A PeekResult is what the pane shows.
type PeekResult struct {
	Agent agent.ID    `json:"agent"`
	State agent.State `json:"state"`
	Pane  string      `json:"pane"`
	Lines []string    `json:"lines"`
}

// Peek returns the last lines of an agent's pane, which it leaves alone.
func (f Panes) Peek(ctx context.Context, r PeekRequest) (v PeekResult, err error) {
	if r.Lines < 0 || r.Lines > 100_000 {
		return v, usagef("peek: lines: %d: must be 1 to 100000", r.Lines)
	}
	list, err := f.Launcher.Inspect(ctx)
	if err != nil {
		return v, err
	}
	st := list.Find(r.Agent)
	if v = (PeekResult{Agent: r.Agent, State: st.State, Pane: st.Pane(), Lines: []string{}}); v.Pane == "" {
		return v, spawn.NoPane(st)
	}
	lines, err := f.Launcher.LastLines(ctx, st, cmp.Or(r.Lines, 40))
	v.Lines = append(v.Lines, lines...)
	return v, err
}
