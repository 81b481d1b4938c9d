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
	"netsky/dashboard/term"
)

// How fast panes are followed. They are captured in rounds: the first change
// begins one at once, what changes until the next is captured together there, and
// each browser is sent what a round has brought in one write. Rounds rest longer
// the more panes are looked at, so that those who look at many cost little more
// than those who look at one.
const (
	roundRest  = 8 * time.Millisecond
	paneRest   = 420 * time.Microsecond // for each pane that is looked at, if that is longer
	paneRetry  = time.Second            // of one that can't be seen
	maxWatched = 64                     // by one browser
)

// A watched pane is one that at least one browser looks at.
type watched struct {
	id     agent.ID
	key    string
	end    context.CancelFunc
	failed chan error // room for one: why it could not be captured

	eyes    int    // browsers
	stirred bool   // it may look different than it does in frame
	frame   *frame // the latest; nil before the first

	r *term.Renderer // of the rounds alone
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
		c.mark(w.key)
	}
}

func (h *hub) open(id agent.ID) *watched {
	ctx, end := context.WithCancel(context.Background())
	w := &watched{id: id, key: keyPane + string(id), end: end, failed: make(chan error, 1), r: new(term.Renderer)}
	l := h.look
	l.panes[id] = w
	h.running.Go(func() { h.followPane(ctx, l, w) })
	return w
}

// followPane has the pane captured whenever it changes, until ctx ends. One that
// can't be seen is tried again: its agent may come up.
func (h *hub) followPane(ctx context.Context, l *look, w *watched) {
	for {
		err := h.stirs(ctx, l, w)
		if ctx.Err() != nil {
			return
		}
		h.publish(l, []*watched{w}, []*frame{failure(w.id, err)})
		select {
		case <-ctx.Done():
		case <-time.After(paneRetry):
		}
	}
}

// stirs passes on that the pane may look different, until it can't be seen.
func (h *hub) stirs(ctx context.Context, l *look, w *watched) error {
	if h.o.Panes == nil {
		return errNoPane
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	select {
	case <-w.failed: // of before
	default:
	}
	stir := func() { h.stir(l, w) }
	gone, err := h.o.Panes.Watch(ctx, w.id, stir) // before the first capture, so that no change is missed
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

func (h *hub) stir(l *look, w *watched) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.stirred = true
	select {
	case l.stirred <- struct{}{}:
	default:
	}
}

// followPanes captures panes in rounds until ctx ends.
func (h *hub) followPanes(ctx context.Context, l *look) {
	var rested time.Time // when the next may begin
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.stirred:
		}
		if rest := time.Until(rested); rest > 0 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(rest):
			}
		}
		panes, looked := h.due(l)
		if len(panes) == 0 {
			continue
		}
		h.round(ctx, l, panes)
		rested = time.Now().Add(max(roundRest, time.Duration(looked)*paneRest))
	}
}

// due is what the next round captures, of how many that are looked at. What changes
// from here on is not in it.
func (h *hub) due(l *look) (panes []*watched, looked int) {
	h.mu.Lock()
	defer h.mu.Unlock()
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

// round captures the panes and publishes those that have changed.
func (h *hub) round(ctx context.Context, l *look, panes []*watched) {
	limited, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	ids := make([]agent.ID, len(panes))
	for i, w := range panes {
		ids[i] = w.id
	}
	frames := make([]*frame, len(panes))
	for i, sc := range h.o.Panes.Screens(limited, ids) {
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
		w.r = new(term.Renderer)
		frames[i] = failure(w.id, sc.Err)
		select {
		case w.failed <- sc.Err:
		default:
		}
	}
	h.publish(l, panes, frames)
}

// publish makes each frame its pane's latest, unless it shows nothing new.
func (h *hub) publish(l *look, panes []*watched, frames []*frame) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, w := range panes {
		next := frames[i]
		if l.panes[w.id] != w || !next.follow(w.frame) {
			continue
		}
		w.frame = next
		for c := range h.clients {
			if _, looks := c.panes[w.id]; looks {
				c.mark(w.key)
			}
		}
	}
}

// A frame is one capture of a pane. It is not changed once it is published.
type frame struct {
	number int // among those of one watched pane
	head   paneHead
	lines  []*term.Line

	onceDelta, onceFull sync.Once
	delta               []byte // from the frame before; nil if there is no sense in it
	full                []byte
}

// failure is the frame that shows why there is none.
func failure(id agent.ID, err error) *frame {
	return &frame{head: paneHead{Agent: id, CursorY: -1, Error: err.Error()}}
}

// follow gives the frame its number, and reports whether it differs from the
// last.
func (f *frame) follow(last *frame) bool {
	if last == nil {
		return true
	}
	f.number = last.number + 1
	return f.head != last.head || !slices.Equal(f.lines, last.lines)
}

// A paneHead is a pane's event, but for its rows: all of them as "rows", or
// how they differ from the event before: "moved" are [to, from, how many], for
// rows that were elsewhere then, and "changed" are those that were not there, by
// their number. With an error there are none.
type paneHead struct {
	Agent   agent.ID `json:"agent"`
	Width   int      `json:"width"`
	Height  int      `json:"height"`
	CursorX int      `json:"cursor_x"`
	CursorY int      `json:"cursor_y"`
	Error   string   `json:"error,omitempty"`
}

// data is the frame for a browser that has base; nil is none. It is made once for
// all browsers that have none, and once for those that have the frame before.
func (f *frame) data(base *frame) []byte {
	var delta []byte
	switch {
	case base == nil:
	case base.number == f.number-1:
		f.onceDelta.Do(func() { f.delta = f.changes(base) })
		delta = f.delta
	default:
		delta = f.changes(base)
	}
	if delta != nil {
		return delta
	}
	f.onceFull.Do(func() { f.full = f.whole() })
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
		b.Write(l.JSON)
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
	moved := f.moved(base)
	b := f.begin("changed")
	if len(moved) > 0 {
		b = f.begin("moved")
		list, _ := json.Marshal(moved)
		b.Write(list)
		b.WriteString(`,"changed":`)
	}
	b.WriteByte('{')
	for i, l := range f.lines {
		if l == base.lines[i] {
			continue
		}
		if len(moved) > 0 && moved[0][0] == i {
			moved[0][0]++
			if moved[0][2]--; moved[0][2] == 0 {
				moved = moved[1:]
			}
			continue
		}
		if b.Bytes()[b.Len()-1] != '{' {
			b.WriteByte(',')
		}
		b.WriteString(`"` + strconv.Itoa(i) + `":`)
		b.Write(l.JSON)
	}
	b.WriteString("}}")
	return b.Bytes()
}

// moved are the rows that base has elsewhere, as [to, from, how many].
func (f *frame) moved(base *frame) (list [][3]int) {
	var from map[*term.Line]int
	looked := 0
	for i, l := range f.lines {
		if l == base.lines[i] {
			continue
		}
		var j int
		var ok bool
		if looked++; looked <= 8 { // most often few have changed, and are new
			j = slices.Index(base.lines, l)
			ok = j >= 0
		} else {
			if from == nil {
				from = make(map[*term.Line]int, len(base.lines))
				for j, l := range base.lines {
					from[l] = j
				}
			}
			j, ok = from[l]
		}
		if n := len(list) - 1; ok && n >= 0 && list[n][0]+list[n][2] == i && list[n][1]+list[n][2] == j {
			list[n][2]++
		} else if ok {
			list = append(list, [3]int{i, j, 1})
		}
	}
	return list
}
