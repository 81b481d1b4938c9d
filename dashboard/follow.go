package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"netsky/agent"
)

// How fast panes are followed. The time between two captures of a pane grows
// with the number of panes that are looked at, so that all of them together are
// captured 800 times a second at most. 50 panes that change ten times a second,
// as those of busy agents do, are captured at each change.
const (
	paneShare   = 1250 * time.Microsecond // of each pane, between two captures of one
	paneFastest = 25 * time.Millisecond
	paneSlowest = 250 * time.Millisecond
	paneRetry   = time.Second // of one that can't be seen
	maxWatched  = 64          // by one browser
)

// A watched pane is one that at least one browser looks at.
type watched struct {
	end   context.CancelFunc
	eyes  int    // browsers
	frame *frame // the latest; nil before the first
}

// watch says which panes the browser looks at now. The caller holds mu.
func (h *hub) watch(c *client, ids []agent.ID) {
	for id := range c.panes {
		if slices.Contains(ids, id) {
			continue
		}
		delete(c.panes, id)
		w := h.look.panes[id]
		if w.eyes--; w.eyes == 0 {
			w.end()
			delete(h.look.panes, id)
		}
	}
	for _, id := range ids {
		if _, looks := c.panes[id]; looks {
			continue
		}
		c.panes[id] = nil
		w := h.look.panes[id]
		if w == nil {
			w = h.open(id)
		}
		w.eyes++
		c.mark(keyPane + string(id))
	}
}

func (h *hub) open(id agent.ID) *watched {
	ctx, end := context.WithCancel(context.Background())
	w := &watched{end: end}
	h.look.panes[id] = w
	h.running.Go(func() { h.followPane(ctx, id, w) })
	return w
}

// followPane publishes the pane as it changes, until ctx ends. One that can't be
// seen is tried again: its agent may come up.
func (h *hub) followPane(ctx context.Context, id agent.ID, w *watched) {
	f := paneFollower{hub: h, id: id, w: w, r: newRenderer()}
	for ctx.Err() == nil {
		if err := f.follow(ctx); err != nil && ctx.Err() == nil {
			f.r = newRenderer()
			f.publish(&frame{head: paneHead{Agent: id, CursorY: -1, Error: err.Error()}})
		}
		select {
		case <-ctx.Done():
		case <-time.After(paneRetry):
		}
	}
}

type paneFollower struct {
	hub *hub
	id  agent.ID
	w   *watched
	r   *renderer
}

func (f *paneFollower) follow(ctx context.Context) error {
	if f.hub.o.Panes == nil {
		return errNoPane
	}
	changed, err := f.hub.o.Panes.Watch(ctx, f.id) // before the first capture, so that no change is missed
	if err != nil {
		return err
	}
	for {
		if err := f.capture(ctx); err != nil {
			return err
		}
		rest := time.NewTimer(f.hub.pace())
		there, err := wait(ctx, changed, rest)
		rest.Stop()
		if err != nil {
			return err
		}
		if !there {
			return errors.New("the pane is gone")
		}
	}
}

// wait waits for a change and for the rest's end. What changes until then will
// be in the capture.
func wait(ctx context.Context, changed <-chan struct{}, rest *time.Timer) (there bool, err error) {
	select {
	case _, there = <-changed:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if !there {
		return false, nil
	}
	select {
	case <-rest.C:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	select {
	case _, there = <-changed:
	default:
	}
	return there, nil
}

func (h *hub) pace() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.look == nil {
		return paneFastest
	}
	return min(max(time.Duration(len(h.look.panes))*paneShare, paneFastest), paneSlowest)
}

func (f *paneFollower) capture(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	sc, err := f.hub.o.Panes.Screen(ctx, f.id, 0)
	if err != nil {
		return err
	}
	f.publish(&frame{
		head:  paneHead{Agent: f.id, Width: sc.Width, Height: sc.Height, CursorX: sc.CursorX, CursorY: sc.CursorY},
		lines: f.r.render(sc.Text),
	})
	return nil
}

// publish makes the frame the pane's latest, unless it shows nothing new.
func (f *paneFollower) publish(next *frame) {
	last := f.w.frame // only this goroutine changes it
	if last != nil {
		if next.head == last.head && slices.Equal(next.lines, last.lines) {
			return
		}
		next.number = last.number + 1
		next.delta = next.changes(last)
	}
	h := f.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	f.w.frame = next
	for c := range h.clients {
		if _, looks := c.panes[f.id]; looks {
			c.mark(keyPane + string(f.id))
		}
	}
}

// A frame is one capture of a pane. It is not changed once it is published.
type frame struct {
	number int // among those of one watched pane
	head   paneHead
	lines  []*line
	delta  []byte // from the frame before; nil if there is no sense in it
	once   sync.Once
	full   []byte
}

// A paneHead is a pane's event, but for its rows: all of them as "rows", or
// those that differ from the event before as "changed", by their number. With
// an error there are none.
type paneHead struct {
	Agent   agent.ID `json:"agent"`
	Width   int      `json:"width"`
	Height  int      `json:"height"`
	CursorX int      `json:"cursor_x"`
	CursorY int      `json:"cursor_y"`
	Error   string   `json:"error,omitempty"`
}

// data is the frame for a browser that has base; nil is none.
func (f *frame) data(base *frame) []byte {
	if base != nil {
		delta := f.delta
		if base.number != f.number-1 {
			delta = f.changes(base)
		}
		if delta != nil {
			return delta
		}
	}
	f.once.Do(func() { f.full = f.whole() })
	return f.full
}

func (f *frame) begin(field string) *bytes.Buffer {
	head, _ := json.Marshal(f.head) // words and numbers
	var b bytes.Buffer
	b.Write(head[:len(head)-1])
	b.WriteString(`,"` + field + `":`)
	return &b
}

func (f *frame) whole() []byte {
	b := f.begin("rows")
	for i, l := range f.lines {
		b.WriteByte("[,"[min(i, 1)])
		b.Write(l.json)
	}
	if len(f.lines) == 0 {
		b.WriteByte('[')
	}
	b.WriteString("]}")
	return b.Bytes()
}

// changes are the rows that differ from base, or nil if the whole is wanted.
func (f *frame) changes(base *frame) []byte {
	if len(f.lines) != len(base.lines) || f.head.Width != base.head.Width || f.head.Height != base.head.Height ||
		f.head.Error != base.head.Error {
		return nil
	}
	b := f.begin("changed")
	b.WriteByte('{')
	for i, l := range f.lines {
		if l == base.lines[i] {
			continue
		}
		if b.Bytes()[b.Len()-1] != '{' {
			b.WriteByte(',')
		}
		b.WriteString(`"` + strconv.Itoa(i) + `":`)
		b.Write(l.json)
	}
	b.WriteString("}}")
	return b.Bytes()
}
