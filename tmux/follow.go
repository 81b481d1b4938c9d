package tmux

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// stirs are the panes that have printed something since they were last asked
// about. What they printed is not kept: a capture says how a pane looks.
type stirs struct {
	flag chan struct{} // one that nobody has taken says enough

	mu    sync.Mutex // guards what follows
	panes map[string]bool
}

func (s *stirs) add(pane string) {
	s.mu.Lock()
	s.panes[pane] = true
	s.mu.Unlock()
	select {
	case s.flag <- struct{}{}:
	default:
	}
}

// Stirred flags that panes of followed windows have printed something, which
// TakeStirred then names. A flag that nobody has taken stands for all after it.
func (c *Client) Stirred() <-chan struct{} { return c.stirs.flag }

// TakeStirred names the panes that have printed something since it was last
// called.
func (c *Client) TakeStirred() []string {
	c.stirs.mu.Lock()
	defer c.stirs.mu.Unlock()
	list := make([]string, 0, len(c.stirs.panes))
	for p := range c.stirs.panes {
		list = append(list, p)
	}
	clear(c.stirs.panes)
	return list
}

// Follow links a window of another session into the client's own, which must be
// a hub's, so that Stirred tells of it. Its size stays, and so does everything
// that a person sees of it. A window that is followed already stays linked once.
// After nil it is followed, also if ctx was cancelled meanwhile: the caller must
// Unfollow. A session that is ended by other means than [Server.Kill] while a
// window of it is followed leaves that window, with its programs, to the hub: see
// [Client.Orphans].
func (c *Client) Follow(ctx context.Context, window string) error {
	if err := windowOK(window); err != nil {
		return err
	}
	hub := "=" + c.session + ":"
	// Whether it is linked there tmux itself is asked, in the same breath.
	return c.relink(ctx, "link-window", "if-shell -F -t "+hub+" '#{W:#{?#{==:#{window_id},"+window+"},1,}}' {} { link-window -d -s "+window+" -t "+hub+" }")
}

// Unfollow undoes Follow. A window that is gone, or that only the hub still has,
// is no error; the latter ends with what runs in it.
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

// relink carries out a line that links or unlinks a window. One that was sent
// and not answered may be carried out at any time later: then nobody knows any
// more what the hub has, so the client ends, and its owner makes the hub anew.
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

// Orphans ends the followed windows whose own sessions are gone, with what runs
// in them, and names them. A person who ends a session by hand means its
// programs to end.
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

// A Screen is how a pane looks: what a capture gives, and what it leaves out.
type Screen struct {
	Text          string // its rows, each ended by a line feed, with their escapes
	History       int    // how many of the rows are above the screen
	Width, Height int    // of the screen, in cells
	Row, Column   int    // of the cursor, on the screen
	Cursor        bool   // it is shown
}

const screenFields = "#{pane_width} #{pane_height} #{cursor_y} #{cursor_x} #{cursor_flag} #{history_size}"

// Screen is how the pane looks, with at most lines of its history.
func (c *Client) Screen(ctx context.Context, pane string, lines int) (Screen, error) {
	target, err := exact(pane)
	if err != nil {
		return Screen{}, err
	}
	t, b := " -t "+Quote(target), " -b "+c.id+"capture"
	out, err := c.Do(ctx, "display-message -p"+t+" '"+screenFields+"' ; capture-pane"+Capture{Lines: lines, Escapes: true}.flags()+t+b+
		" ; show-buffer"+b+" ; delete-buffer"+b)
	if err != nil {
		return Screen{}, err
	}
	head, rest, _ := strings.Cut(out, "\n")
	var n [6]int
	fields := strings.Fields(head)
	if len(fields) != len(n) {
		return Screen{}, fmt.Errorf("tmux display-message: %s: %q is no screen", pane, head)
	}
	for i, f := range fields {
		if n[i], err = strconv.Atoi(f); err != nil {
			return Screen{}, fmt.Errorf("tmux display-message: %s: %w", pane, err)
		}
	}
	s := Screen{Width: n[0], Height: n[1], Row: n[2], Column: n[3], Cursor: n[4] != 0, History: min(max(lines, 0), n[5])}
	if s.Text, err = unvis(rest); err != nil {
		return Screen{}, fmt.Errorf("tmux show-buffer: %s: %w", pane, err)
	}
	return s, nil
}
