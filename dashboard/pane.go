package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"netsky/agent"
	"netsky/dashboard/term"
	"netsky/store"
)

// maxHistory is how many lines above a screen may be asked for.
const maxHistory = 5000

// A Pane is an agent's terminal for a browser: rows of runs, in which nothing
// is left that a terminal would obey.
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

// errNoPane is what the error of a pane matches that can't be seen.
var errNoPane = errors.New("no pane to be seen")

// pane captures an agent's pane, with at most history lines from above it.
func (s *Server) pane(ctx context.Context, id agent.ID, history int) (Pane, error) {
	return capture(ctx, s.o, new(term.Renderer), id, history)
}

func capture(ctx context.Context, o Options, r *term.Renderer, id agent.ID, history int) (Pane, error) {
	if o.Panes == nil {
		return Pane{}, fmt.Errorf("%s: %w", id, errNoPane)
	}
	sc, err := o.Panes.Screen(ctx, id, history)
	if err != nil {
		return Pane{}, fmt.Errorf("%s: %w: %w", id, errNoPane, err)
	}
	p := Pane{
		Agent: id, Time: store.At(o.Now()), Width: sc.Width, Height: sc.Height, History: sc.History,
		CursorX: sc.CursorX, CursorY: sc.CursorY, Rows: []term.Row{},
	}
	for _, l := range r.Render(sc.Text) {
		p.Rows = append(p.Rows, l.Row)
	}
	return p, nil
}

// palettePath has the style sheet of the panes' rows.
const palettePath = "/palette.css"

func (s *Server) paletteCSS(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	w.Header().Set("Cache-Control", "private, max-age=86400")
	w.Write(term.CSS())
}
