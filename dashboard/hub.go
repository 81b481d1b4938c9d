package dashboard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"sync"

	"netsky/agent"
	"netsky/store"
)

// A hub brings what has changed to the browsers that follow. It holds the
// latest state of each key once, for all of them; a browser has only the set of
// keys that it has not been sent since they changed. So one that does not read
// costs that set, and whoever publishes waits for nobody.
//
// Its goroutines run while at least one browser follows.
type hub struct {
	o         Options
	approvals func() ([]Approval, error)
	running   sync.WaitGroup // goroutines, and browsers that follow

	mu      sync.Mutex // guards what follows, and all of look, watched and client
	closed  bool
	clients map[*client]struct{}
	look    *look // nil while nobody follows
}

func newHub(o Options, approvals func() ([]Approval, error)) *hub {
	return &hub{o: o, approvals: approvals, clients: map[*client]struct{}{}}
}

// The keys of events. An agent's and a pane's have its name behind them.
const (
	keyHello     = "hello"
	keyRecords   = "records"
	keyAgents    = "agents" // that they could not be listed
	keyAgent     = "agent:"
	keyApprovals = "approvals"
	keyPane      = "pane:"
)

// A look is what is known from the first browser that follows to the last.
type look struct {
	end   context.CancelFunc
	state map[string]json.RawMessage // but for records and panes
	rec   recent
	panes map[agent.ID]*watched
	// stirred has room for one: panes may have changed.
	stirred chan struct{}
}

// A client is one browser that follows.
type client struct {
	wake  chan struct{} // room for one: keys are due
	gone  chan struct{} // closed when the server ends
	cut   func()        // ends a write that waits; called after gone is closed
	sent  int64         // the last log it knows of; -1: those that are there when it comes
	book  int           // the database it knows them of
	due   []string      // keys, in the order in which they changed
	isDue map[string]bool
	panes map[agent.ID]*frame // that it looks at, as it was sent them last
	asks  chan []agent.ID     // room for one: what it wants to look at from now on
}

var (
	errFull  = errors.New("too many browsers follow already")
	errEnded = errors.New("the dashboard ends")
)

// join adds a browser that knows the logs up to after. The caller must call
// leave. cut ends what is being written to it.
func (h *hub) join(after int64, cut func()) (*client, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return nil, errEnded
	case len(h.clients) >= h.o.MaxStreams:
		return nil, errFull
	}
	c := &client{
		wake: make(chan struct{}, 1), gone: make(chan struct{}), cut: cut, sent: after,
		isDue: map[string]bool{}, panes: map[agent.ID]*frame{}, asks: make(chan []agent.ID, 1),
	}
	h.clients[c] = struct{}{}
	h.running.Add(1)
	if h.look == nil {
		h.start()
	}
	c.mark(keyHello)
	for key := range h.look.state {
		c.mark(key)
	}
	if c.book = h.look.rec.book; h.look.rec.known {
		c.mark(keyRecords)
	}
	return c, nil
}

func (h *hub) leave(c *client) {
	defer h.running.Done()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watch(c, nil)
	delete(h.clients, c)
	if len(h.clients) == 0 {
		h.look.end()
		h.look = nil
	}
}

// start begins to look. The caller holds mu.
func (h *hub) start() {
	ctx, end := context.WithCancel(context.Background())
	hello, _ := json.Marshal(map[string]string{"version": h.o.Version})
	h.look = &look{
		end: end, state: map[string]json.RawMessage{keyHello: hello},
		panes: map[agent.ID]*watched{}, stirred: make(chan struct{}, 1),
	}
	l := h.look
	h.running.Go(func() { h.followRecords(ctx, l) })
	h.running.Go(func() { h.followAgents(ctx, l) })
	h.running.Go(func() { h.followPanes(ctx, l) })
}

// close ends all that browsers follow and waits for it.
func (h *hub) close() {
	h.end()
	h.running.Wait()
}

func (h *hub) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		for c := range h.clients {
			close(c.gone)
			c.cut()
		}
	}
}

// mark says that the key has changed. The caller holds mu.
func (c *client) mark(key string) {
	if c.isDue[key] {
		return
	}
	c.isDue[key] = true
	c.due = append(c.due, key)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// put publishes the state of a key if it has changed; nil removes it.
func (h *hub) put(l *look, key string, v any) {
	var data json.RawMessage
	if v != nil {
		var err error
		if data, err = json.Marshal(v); err != nil {
			h.o.Log.Warn("event", "key", key, "error", err)
			return
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if string(l.state[key]) == string(data) {
		return
	}
	if l.state[key] = data; v == nil {
		delete(l.state, key)
	}
	for c := range h.clients {
		c.mark(key)
	}
}

// An event is one key's latest state on its way to one browser.
type event struct {
	id   int64
	key  string
	data json.RawMessage
	// Or, to be made into data outside of the lock:
	rec         *Records
	frame, base *frame
}

// ended reports whether the server ends. Who writes asks it after having set the
// time that a write may take, so that it is cut that has the last word on it.
func (c *client) ended() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// take is what the browser is to be sent now.
func (h *hub) take(c *client) []event {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]event, 0, len(c.due))
	for _, key := range c.due {
		if e, ok := h.eventFor(c, key); ok {
			e.id, e.key = max(c.sent, 0), key
			list = append(list, e)
		}
	}
	c.due = c.due[:0]
	clear(c.isDue)
	return list
}

// eventFor notes that the browser will have been sent the state. The caller
// holds mu.
func (h *hub) eventFor(c *client, key string) (event, bool) {
	if key == keyRecords {
		rec := h.look.rec.since(c.sent, c.book)
		c.sent, c.book = rec.Last, h.look.rec.book
		return event{rec: &rec}, true
	}
	if len(key) > len(keyPane) && key[:len(keyPane)] == keyPane {
		id := agent.ID(key[len(keyPane):])
		base, looks := c.panes[id]
		w := h.look.panes[id]
		if !looks || w == nil || w.frame == nil || w.frame == base {
			return event{}, false
		}
		c.panes[id] = w.frame
		return event{frame: w.frame, base: base}, true
	}
	data, ok := h.look.state[key]
	if !ok {
		data = json.RawMessage("null")
	}
	return event{data: data}, true
}

// version names the state, as [pages.known] does for the page that shows it; ""
// for what is no part of a page.
func (e event) version() string {
	switch {
	case e.rec != nil:
		return e.rec.version
	case e.frame != nil, e.key == keyHello:
		return ""
	}
	return versionOf(e.data)
}

// versionOf is short: a page has one for each agent.
func versionOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:6])
}

// append adds the event as both SSE and websocket carry it.
func (e event) append(b []byte) []byte {
	switch {
	case e.rec != nil:
		data, err := json.Marshal(e.rec)
		if err != nil { // a log's fields; they came out of JSON
			data, _ = json.Marshal(Records{Since: e.rec.Since, Last: e.rec.Last, Logs: []store.Log{}, More: true})
		}
		e.data = data
	case e.frame != nil:
		e.data = e.frame.data(e.base)
	}
	b = append(b, `{"id":`...)
	b = appendInt(b, e.id)
	b = append(b, `,"key":"`...) // of letters, digits and a colon
	b = append(b, e.key...)
	if v := e.version(); v != "" {
		b = append(append(b, `","v":"`...), v...)
	}
	b = append(b, `","data":`...)
	b = append(b, e.data...)
	return append(b, '}')
}
