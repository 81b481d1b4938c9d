package dashboard

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

// Due is how many keys wait for the browser that has the most of them.
func (s *Server) Due() (n int) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	for c := range s.hub.clients {
		n = max(n, len(c.due))
	}
	return n
}
