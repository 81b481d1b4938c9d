package dashboard

import "html/template"

// A renderer turns captured screens into rows.
type renderer struct{}

func newRenderer() *renderer { return &renderer{} }

func (r *renderer) render(text string) []Row { return []Row{} }

// HTML is the row for a page that works without a script.
func (r Row) HTML() template.HTML { return "" }
