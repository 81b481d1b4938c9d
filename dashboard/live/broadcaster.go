package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"

	"netsky/agent"
)

// A Broadcaster keeps the latest value of each key once, for all browsers; for a
// browser it keeps only the keys that have changed since they were last sent. So a
// browser that does not read costs that set, and a publisher never waits.
type Broadcaster struct {
	o       Options
	sources []func(context.Context, *look) // publish until their context ends
	running sync.WaitGroup                 // goroutines, and browsers that follow

	mu      sync.Mutex // guards the fields below, and all of look, watched and client
	closed  bool
	clients map[*client]struct{}
	look    *look // nil while no browser follows
}

// A look is what is known from the first browser that follows to the last.
type look struct {
	end     context.CancelFunc
	values  map[string]value
	panes   map[agent.ID]*watched
	stirred chan struct{} // room for one: panes may have changed
}

// A client is a browser that follows the broadcaster.
type client struct {
	b    *Broadcaster
	wake chan struct{} // room for one: keys are due
	gone chan struct{} // closed when the Broadcaster ends
	cut  func()        // ends a write that blocks; called after gone is closed

	due   []string // keys, in the order in which they changed
	isDue map[string]bool
	// had is the value sent last of keys whose events build on it: the records, and
	// each pane that it watches, nil before the first.
	had map[string]value
}

var (
	errFull  = errors.New("too many browsers are connected")
	errEnded = errors.New("the dashboard is shutting down")
)

// join adds a browser that has the logs up to after. The caller must call leave. cut
// aborts a write to the browser.
func (b *Broadcaster) join(after int64, cut func()) (*client, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return nil, errEnded
	case len(b.clients) >= b.o.MaxStreams:
		return nil, errFull
	}
	if b.look == nil {
		b.start()
	}
	base := &recent{last: after}
	if now, ok := b.look.values[keyRecords].(*recent); ok {
		base.book = now.book
	}
	c := &client{
		b: b, wake: make(chan struct{}, 1), gone: make(chan struct{}), cut: cut,
		isDue: map[string]bool{}, had: map[string]value{keyRecords: base},
	}
	b.clients[c] = struct{}{}
	b.running.Add(1)
	c.mark(keyHello)
	for key := range b.look.values {
		if !isPane(key) && key != keyRecords {
			c.mark(key)
		}
	}
	if b.look.values[keyRecords] != nil {
		c.mark(keyRecords) // last: it advances the ids
	}
	return c, nil
}

func (c *client) leave() {
	b := c.b
	defer b.running.Done()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.clients, c)
	if len(b.clients) == 0 {
		b.look.end()
		b.look = nil
	}
}

// start runs the sources. The caller holds mu.
func (b *Broadcaster) start() {
	ctx, end := context.WithCancel(context.Background())
	hello, _ := json.Marshal(map[string]string{"version": b.o.Version})
	l := &look{
		end: end, values: map[string]value{keyHello: &doc{data: hello}},
		panes: map[agent.ID]*watched{}, stirred: make(chan struct{}, 1),
	}
	b.look = l
	for _, run := range b.sources {
		b.running.Go(func() { run(ctx, l) })
	}
}

// Close disconnects all browsers, and waits until that is done.
func (b *Broadcaster) Close() {
	b.End()
	b.running.Wait()
}

// End is Close without the wait. No browser can join after it.
func (b *Broadcaster) End() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.closed = true
		for c := range b.clients {
			close(c.gone)
			c.cut()
		}
	}
}

// ended reports whether the Broadcaster is closing. A writer calls it after setting its
// write deadline, so that cut's deadline wins.
func (c *client) ended() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// mark makes the key due. The caller holds mu.
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

// put publishes the value of a key as JSON, if it has changed; nil removes it.
func (b *Broadcaster) put(l *look, key string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		b.o.Log.Warn("event", "key", key, "error", err)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	old, had := l.values[key].(*doc)
	switch {
	case v == nil && had:
		delete(l.values, key)
		b.changed(l, key)
	case v != nil && (!had || !bytes.Equal(old.data, data)):
		b.set(l, key, newDoc(data))
	}
}

// set publishes a value. The caller holds mu.
func (b *Broadcaster) set(l *look, key string, v value) {
	l.values[key] = v
	b.changed(l, key)
}

func (b *Broadcaster) changed(l *look, key string) {
	if l != b.look {
		return // the browsers that followed then are gone
	}
	for c := range b.clients {
		if _, watches := c.had[key]; watches || !isPane(key) {
			c.mark(key)
		}
	}
}

// take returns the events to send to the browser now.
func (c *client) take() []event {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	list := make([]event, 0, len(c.due))
	for _, key := range c.due {
		v := c.b.look.values[key]
		had, builds := c.had[key]
		if isPane(key) && (!builds || v == nil || v == had) {
			continue
		}
		if v == nil {
			v = null
		}
		if builds {
			c.had[key] = v.base()
		}
		list = append(list, event{id: c.last(), key: key, value: v, had: had})
	}
	c.due = c.due[:0]
	clear(c.isDue)
	return list
}

// last returns the log that the browser will have. The caller holds mu.
func (c *client) last() int64 { return max(c.had[keyRecords].(*recent).last, 0) }
