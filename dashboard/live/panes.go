package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"netsky/agent"
	"netsky/internal/proc"
	"netsky/store"
)

// How fast panes are followed. They are captured in rounds: the first change starts one
// at once, further changes wait for the next round, and each browser gets a round's
// frames in one write. The more panes are watched, the longer the pause between rounds,
// so that watching many costs little more than watching one.
const (
	roundRest  = 8 * time.Millisecond
	paneRest   = 420 * time.Microsecond // for each watched pane, if that is longer
	paneRetry  = time.Second            // between attempts to capture one that can't be captured
	maxWatched = 64                     // by one browser
)

// ErrNoPane is returned if an agent's pane can't be captured.
var ErrNoPane = errors.New("no pane to show")

// watch sets which panes the browser watches from now on.
func (c *client) watch(ids []agent.ID) {
	b := c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, w := range b.look.panes {
		if _, watches := c.had[w.key]; !watches || slices.Contains(ids, id) {
			continue
		}
		delete(c.had, w.key)
		if w.eyes--; w.eyes == 0 {
			w.end()
			delete(b.look.panes, id)
			delete(b.look.values, w.key)
		}
	}
	for _, id := range ids {
		w := b.look.panes[id]
		if w == nil {
			w = b.open(id)
		}
		if _, watches := c.had[w.key]; watches {
			continue
		}
		c.had[w.key] = nil
		w.eyes++
		c.mark(w.key)
	}
}

// open starts to follow a pane. The caller holds mu.
func (b *Broadcaster) open(id agent.ID) *watched {
	ctx, end := context.WithCancel(context.Background())
	w := &watched{id: id, key: keyPane + string(id), end: end, failed: make(chan error, 1), r: new(Renderer)}
	l := b.look
	l.panes[id] = w
	b.running.Go(func() { b.followPane(ctx, l, w) })
	return w
}

// followPane has the pane captured whenever it changes, until ctx ends. One that can't
// be captured is tried again: its agent may be started.
func (b *Broadcaster) followPane(ctx context.Context, l *look, w *watched) {
	for {
		err := b.stirs(ctx, l, w)
		if ctx.Err() != nil {
			return
		}
		b.publish(l, []*watched{w}, []*frame{failure(w.id, err)})
		proc.Sleep(ctx, paneRetry)
	}
}

// stirs reports changes of the pane until it can't be captured.
func (b *Broadcaster) stirs(ctx context.Context, l *look, w *watched) error {
	if b.o.Panes == nil {
		return ErrNoPane
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	select {
	case <-w.failed: // of before
	default:
	}
	stir := func() { b.stir(l, w) }
	gone, err := b.o.Panes.Watch(ctx, w.id, stir) // before the first capture, so that no change is missed
	if err != nil {
		return err
	}
	stir()
	select {
	case err := <-w.failed:
		return err
	case <-gone:
		return errors.New("the pane is gone")
	}
}

func (b *Broadcaster) stir(l *look, w *watched) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.stirred = true
	select {
	case l.stirred <- struct{}{}:
	default:
	}
}

// followPanes captures panes in rounds until ctx ends.
func (b *Broadcaster) followPanes(ctx context.Context, l *look) {
	var rested time.Time // when the next may start
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.stirred:
		}
		if rest := time.Until(rested); rest > 0 {
			if proc.Sleep(ctx, rest) != nil {
				return
			}
		}
		panes, looked := b.due(l)
		if len(panes) == 0 {
			continue
		}
		b.round(ctx, l, panes)
		rested = time.Now().Add(max(roundRest, time.Duration(looked)*paneRest))
	}
}

// due returns what the next round captures, and how many panes are watched. Later
// changes are for the round after it.
func (b *Broadcaster) due(l *look) (panes []*watched, looked int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-l.stirred: // by one of those
	default:
	}
	for _, w := range l.panes {
		if w.stirred {
			w.stirred = false
			panes = append(panes, w)
		}
	}
	return panes, len(l.panes)
}

// round captures the panes, and publishes each pane that has changed.
func (b *Broadcaster) round(ctx context.Context, l *look, panes []*watched) {
	limited, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	ids := make([]agent.ID, len(panes))
	for i, w := range panes {
		ids[i] = w.id
	}
	frames := make([]*frame, len(panes))
	for i, sc := range b.o.Panes.Screens(limited, ids) {
		w := panes[i]
		if sc.Err == nil {
			frames[i] = &frame{
				head:  paneHead{Agent: w.id, Width: sc.Width, Height: sc.Height, CursorX: sc.CursorX, CursorY: sc.CursorY},
				lines: w.r.Render(sc.Text),
			}
			continue
		}
		if ctx.Err() != nil {
			return
		}
		w.r = new(Renderer)
		frames[i] = failure(w.id, sc.Err)
		select {
		case w.failed <- sc.Err:
		default:
		}
	}
	b.publish(l, panes, frames)
}

// publish makes each frame its pane's latest, unless nothing has changed.
func (b *Broadcaster) publish(l *look, panes []*watched, frames []*frame) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, w := range panes {
		next := frames[i]
		last, _ := l.values[w.key].(*frame)
		if l.panes[w.id] == w && next.follow(last) {
			b.set(l, w.key, next)
		}
	}
}

// A Pane is an agent's terminal for a browser: rows of runs, without control sequences.
type Pane struct {
	Agent   agent.ID   `json:"agent"`
	Time    store.Time `json:"time"`
	Width   int        `json:"width"`
	Height  int        `json:"height"`
	History int        `json:"history"`  // how many of the rows are above the screen
	CursorX int        `json:"cursor_x"` // with cursor_y -1: not shown
	CursorY int        `json:"cursor_y"`
	Rows    []Row      `json:"rows"`
}

// Pane captures an agent's pane, with at most history lines from above it. If it can't,
// the error matches ErrNoPane.
func (b *Broadcaster) Pane(ctx context.Context, id agent.ID, history int) (Pane, error) {
	if b.o.Panes == nil {
		return Pane{}, fmt.Errorf("%s: %w", id, ErrNoPane)
	}
	sc, err := b.o.Panes.Screen(ctx, id, history)
	if err != nil {
		return Pane{}, fmt.Errorf("%s: %w: %w", id, ErrNoPane, err)
	}
	p := Pane{
		Agent: id, Time: store.At(b.o.Now()), Width: sc.Width, Height: sc.Height, History: sc.History,
		CursorX: sc.CursorX, CursorY: sc.CursorY, Rows: []Row{},
	}
	for _, l := range new(Renderer).Render(sc.Text) {
		p.Rows = append(p.Rows, l.Row)
	}
	return p, nil
}
