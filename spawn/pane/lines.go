package pane

import (
	"context"
	"slices"
	"strings"
	"time"

	"netsky/internal/proc"
	"netsky/tmux"
)

// lastShown is how long a pane may take to show what its keeper has printed. The keeper
// prints before it records, so only tmux's reading is waited for.
const lastShown = 500 * time.Millisecond

// Lines returns what a pane shows, with up to n lines of its history, without the empty
// lines at its end. It waits for the line that contains last, 0.5 s at most.
func Lines(ctx context.Context, server *tmux.Server, id string, n int, last string) ([]string, error) {
	for end := time.Now().Add(lastShown); ; {
		text, err := server.Capture(ctx, id, tmux.Capture{Lines: n})
		if err != nil {
			return nil, err
		}
		if strings.Contains(text, last) || time.Now().After(end) {
			return trimmed(text), nil
		}
		if proc.Sleep(ctx, 5*time.Millisecond) != nil {
			return nil, ctx.Err()
		}
	}
}

// Edges returns all lines, or of more than n the first and the last: some programs print
// the reason first, some last.
func Edges(lines []string, n int) []string {
	if len(lines) <= n {
		return lines
	}
	return slices.Concat(lines[:n/2], []string{"…"}, lines[len(lines)-n/2:])
}

// trimmed cuts a captured screen into lines without trailing spaces, and without the
// empty ones at its end.
func trimmed(text string) []string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
