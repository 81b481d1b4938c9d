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
