package view

import "github.com/clipperhouse/displaywidth"

// Columns returns how many columns a text takes on a terminal.
func Columns(s string) int { return displaywidth.String(s) }

// Cut returns the text in at most width columns; 0 means no limit.
func Cut(s string, width int) string {
	if width <= 0 {
		return s
	}
	return displaywidth.TruncateString(s, width, "…")
}
