package tmux

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Hear sets a function to call with the id of a pane of a followed window whenever it has
// output; Screen returns its content. It is called by the goroutine that reads all
// answers, so it must be quick and wait for none of them, and it must not keep the id's
// bytes.
func (c *Client) Hear(stirred func(pane []byte)) { c.stirred.Store(&stirred) }

// Follow links a window of another session into the client's own, which must be a hub's,
// so that Hear reports its output. Its size does not change, nor anything that a person
// sees of it. A window that is already followed stays linked once. After nil it is
// followed, even if ctx was cancelled meanwhile: the caller must Unfollow. If a session is
// ended by other means than [Server.Kill] while a window of it is followed, that window
// and its programs remain in the hub: see [Client.Orphans].
func (c *Client) Follow(ctx context.Context, window string) error {
	if err := windowOK(window); err != nil {
		return err
	}
	hub := "=" + c.session + ":"
	// tmux itself checks in the same call whether it is linked there.
	return c.relink(ctx, "link-window", "if-shell -F -t "+hub+" '#{W:#{?#{==:#{window_id},"+window+"},1,}}' {} { link-window -d -s "+window+" -t "+hub+" }")
}

// Unfollow undoes Follow. It is no error if the window is gone, or only the hub still has
// it; the latter ends with what runs in it.
func (c *Client) Unfollow(ctx context.Context, window string) error {
	if err := windowOK(window); err != nil {
		return err
	}
	err := c.relink(ctx, "unlink-window", "unlink-window -k -t ="+c.session+":"+window)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// relink executes a line that links or unlinks a window. One that was sent and not
// answered may be executed at any time later: then it is unknown what the hub has, so
// the client ends, and its owner makes a new hub.
func (c *Client) relink(ctx context.Context, verb, line string) error {
	ctx, cancel, err := settled(ctx, verb)
	if err != nil {
		return err
	}
	defer cancel()
	if _, err = c.Do(ctx, line); err != nil && ctx.Err() != nil {
		_ = c.cmd.Process.Kill()
	}
	return err
}

// Orphans ends the followed windows whose own sessions are gone, with what runs in them,
// and returns their names. A person who ends a session by hand means its programs to end.
func (c *Client) Orphans(ctx context.Context) (ended []string, err error) {
	out, err := c.Do(ctx, "list-windows -t ="+c.session+": -F '#{window_id} #{window_linked_sessions} #{window_name}'")
	if err != nil {
		return nil, err
	}
	first := true // the hub's own
	for line := range strings.Lines(out + "\n") {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		if first {
			first = false
			continue
		}
		if f[1] != "1" {
			continue
		}
		if err := c.Unfollow(ctx, f[0]); err != nil {
			return ended, err
		}
		ended = append(ended, f[0])
	}
	return ended, nil
}

func windowOK(id string) error {
	digits, ok := strings.CutPrefix(id, "@")
	if _, err := strconv.ParseUint(digits, 10, 32); !ok || err != nil {
		return fmt.Errorf("tmux: window %q: want an id such as @3", id)
	}
	return nil
}

// A Screen is the content and state of a pane.
type Screen struct {
	Text          string // its rows, each ended by a line feed, with their escapes
	History       int    // how many of the rows are above the screen
	Width, Height int    // of the screen, in cells
	Row, Column   int    // of the cursor, on the screen
	Cursor        bool   // it is shown
}

const screenFields = "#{pane_width} #{pane_height} #{cursor_y} #{cursor_x} #{cursor_flag} #{history_size}"

// A Shot is a pane's Screen, or the reason why there is none.
type Shot struct {
	Screen
	Err error
}

// Screen returns the pane's screen, with at most lines of its history.
func (c *Client) Screen(ctx context.Context, pane string, lines int) (Screen, error) {
	s := c.Screens(ctx, []string{pane}, lines)[0]
	return s.Screen, s.Err
}

// Screens returns the screens of several panes, each with at most lines of its history, in
// the order of their names. They are requested together.
func (c *Client) Screens(ctx context.Context, panes []string, lines int) []Shot {
	list := make([]Shot, len(panes))
	reqs := make([]*request, 0, len(panes))
	b := " -b " + c.id + "capture"
	take := "' ; capture-pane" + Capture{Lines: lines, Escapes: true}.flags() + b
	rest := " ; show-buffer" + b + " ; delete-buffer" + b
	for i, pane := range panes {
		target, err := exact(pane)
		if err == nil {
			t := " -t " + Quote(target)
			req := newRequest("display-message -p" + t + " '" + screenFields + take + t + rest)
			req.vis, req.blocks = true, 4 // the fields are numbers
			reqs = append(reqs, req)
		}
		list[i].Err = err
	}
	if len(reqs) == 0 {
		return list
	}
	err := c.ask(ctx, reqs...)
	for i, pane := range panes {
		s := &list[i]
		if s.Err != nil {
			continue
		}
		req := reqs[0]
		reqs = reqs[1:]
		switch {
		case err != nil:
			s.Err = err
		case req.err != nil:
			s.Err = req.err
		default:
			if s.Screen, err = screen(req.text.String(), lines); err != nil {
				s.Err, err = fmt.Errorf("tmux display-message: %s: %w", pane, err), nil
			}
		}
	}
	return list
}

// screen parses the fields and the capture.
func screen(reply string, lines int) (Screen, error) {
	head, text, _ := strings.Cut(strings.TrimSuffix(reply, "\n"), "\n")
	var n [6]int
	fields := strings.Fields(head)
	if len(fields) != len(n) {
		return Screen{}, fmt.Errorf("%q is not a screen", head)
	}
	for i, f := range fields {
		var err error
		if n[i], err = strconv.Atoi(f); err != nil {
			return Screen{}, err
		}
	}
	return Screen{
		Text: text, Width: n[0], Height: n[1], Row: n[2], Column: n[3], Cursor: n[4] != 0, History: min(max(lines, 0), n[5]),
	}, nil
}
