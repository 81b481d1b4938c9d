package tmux

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Look is what a pane shows, and when its program and a person were last active.
// Times are whole seconds, rounded down.
type Look struct {
	Screen []string // its rows from the top, without blanks at their ends
	Row    int      // of the cursor
	Column int      // of the cursor, in cells
	Cursor bool     // it is shown
	InMode bool
	Dead   bool
	Output time.Time // of the window's last output
	// Person is when somebody last attached to the session or pressed a key in it; zero
	// if nobody ever did. It stays when they leave.
	Person time.Time
}

const lookFields = "#{pane_id} #{cursor_y} #{cursor_x} #{cursor_flag} #{pane_in_mode} #{pane_dead} " +
	"#{window_activity} #{session_activity} #{?session_last_attached,1,0}"

// Look looks at a pane as one of its session's: a person's keys that reached it through
// another session are not seen.
func (s *Server) Look(ctx context.Context, p Pane) (Look, error) {
	target, err := exact(p.ID)
	if err != nil {
		return Look{}, err
	}
	if !nameOK(p.Session) {
		return Look{}, fmt.Errorf("tmux list-panes: session %q: want letters, digits, - or _", p.Session)
	}
	bound := rand.Text()
	out, err := s.run(ctx, nil, "list-panes", "-s", "-t", "="+p.Session+":", "-F", bound+" "+lookFields+" "+bound, ";",
		"capture-pane", "-p", "-t", target)
	if err != nil {
		return Look{}, err
	}
	var l Look
	found := false
	for {
		_, rest, ok := strings.Cut(out, bound+" ")
		if !ok {
			break
		}
		fields, after, ok := strings.Cut(rest, " "+bound+"\n")
		if !ok {
			return Look{}, fmt.Errorf("tmux list-panes: %s: an answer without its end", p.ID)
		}
		if id, rest, _ := strings.Cut(fields, " "); id == p.ID {
			if err := l.parse(rest); err != nil {
				return Look{}, fmt.Errorf("tmux list-panes: %s: %w", p.ID, err)
			}
			found = true
		}
		out = after
	}
	if !found {
		return Look{}, fmt.Errorf("tmux list-panes: %w: %s in %s", ErrNotFound, p.ID, p.Session)
	}
	for row := range strings.Lines(out) {
		l.Screen = append(l.Screen, strings.TrimRight(row, " \n"))
	}
	return l, nil
}

func (l *Look) parse(text string) error {
	var n [8]int64
	fields := strings.Fields(text)
	if len(fields) != len(n) {
		return fmt.Errorf("%d fields, want %d", len(fields), len(n))
	}
	for i, f := range fields {
		v, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return err
		}
		n[i] = v
	}
	l.Row, l.Column, l.Cursor, l.InMode, l.Dead = int(n[0]), int(n[1]), n[2] != 0, n[3] != 0, n[4] != 0
	l.Output = time.Unix(n[5], 0)
	if n[7] != 0 {
		l.Person = time.Unix(n[6], 0)
	}
	return nil
}

// CursorRow returns the text of the cursor's row.
func (l Look) CursorRow() string {
	if l.Row < 0 || l.Row >= len(l.Screen) {
		return ""
	}
	return l.Screen[l.Row]
}
