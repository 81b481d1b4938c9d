package dashboard

import (
	"strings"
	"unicode/utf8"
)

// Render is a captured screen as rows.
func Render(text string) []Row { return NewRenderer().Render(text) }

// A Renderer keeps what it knows of a pane between two captures.
type Renderer struct{ r *renderer }

func NewRenderer() Renderer { return Renderer{newRenderer()} }

func (r Renderer) Render(text string) []Row {
	rows := []Row{}
	for _, l := range r.r.render(text) {
		rows = append(rows, l.row)
	}
	return rows
}

// JSON is the row as a browser is sent it.
func (r Row) JSON() string { return string(r.json()) }

// Due is how many keys wait for the browser that has the most of them.
func (s *Server) Due() (n int) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	for c := range s.hub.clients {
		n = max(n, len(c.due))
	}
	return n
}

// Cells is how wide a page makes a run.
func Cells(run Run) int {
	n, each := utf8.RuneCountInString(run.Text), strings.Fields(run.Class)
	switch kind(append([]string{""}, each...)[len(each)]) {
	case narrow:
		return 1
	case wide:
		return 2
	case wides:
		return 2 * n
	case mark:
		return 0
	}
	return n
}
