package live

import (
	"context"
	"fmt"

	"netsky/agent"
	"netsky/dashboard/term"
	"netsky/store"
)

// A Pane is an agent's terminal for a browser: rows of runs without anything that
// a terminal would obey.
type Pane struct {
	Agent   agent.ID   `json:"agent"`
	Time    store.Time `json:"time"`
	Width   int        `json:"width"`
	Height  int        `json:"height"`
	History int        `json:"history"`  // how many of the rows are above the screen
	CursorX int        `json:"cursor_x"` // with cursor_y -1: not shown
	CursorY int        `json:"cursor_y"`
	Rows    []term.Row `json:"rows"`
}

// Pane captures an agent's pane, with at most history lines from above it. The
// error of one that can't be captured matches ErrNoPane.
func (b *Broadcaster) Pane(ctx context.Context, id agent.ID, history int) (Pane, error) {
	if b.o.Panes == nil {
		return Pane{}, fmt.Errorf("%s: %w", id, ErrNoPane)
	}
	sc, err := b.o.Panes.Screen(ctx, id, history)
	if err != nil {
		return Pane{}, fmt.Errorf("%s: %w: %w", id, ErrNoPane, err)
	}
	p := Pane{
		Agent: id, Time: store.At(b.o.Now()), Width: sc.Width, Height: sc.Height, History: sc.History,
		CursorX: sc.CursorX, CursorY: sc.CursorY, Rows: []term.Row{},
	}
	for _, l := range new(term.Renderer).Render(sc.Text) {
		p.Rows = append(p.Rows, l.Row)
	}
	return p, nil
}
