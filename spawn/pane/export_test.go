package pane

import "netsky/tmux"

// Asks reports whether a screen of these rows, with the cursor on the last,
// looks like a question.
func Asks(rows ...string) bool {
	return asks(tmux.Look{Screen: rows, Row: len(rows) - 1, Cursor: true})
}

// SameLine reports whether an input line is taken for what it was.
func SameLine(line, calm string) bool { return sameLine(line, calm) }
