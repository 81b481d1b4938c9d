package live

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"netsky/agent"
	"netsky/dashboard/access"
)

const (
	beatEvery = 20 * time.Second // so that a dead connection is noticed

	// Events that are due together go out in writes of about this many bytes, which
	// also limits the buffer of a browser.
	writeSize = 32 << 10
)

// A Subscription is what a browser asks to follow.
type Subscription struct {
	After int64      // the last log it has; -1: those that exist now
	Watch []agent.ID // the panes, from ParseWatch
}

// follow registers the browser, or refuses the request. The caller must call done.
func (b *Broadcaster) follow(w http.ResponseWriter, r *http.Request, s Subscription, cut func()) (*client, bool) {
	c, err := b.join(s.After, cut)
	if err != nil {
		w.Header().Set("Retry-After", "5")
		access.Refuse(w, r, http.StatusServiceUnavailable, err.Error())
		return nil, false
	}
	c.watch(s.Watch)
	return c, true
}

// done removes the browser.
func (c *client) done() {
	c.watch(nil)
	c.leave()
}

// ParseWatch parses the names of the agents whose panes a browser watches.
func ParseWatch(list []string) ([]agent.ID, error) {
	if len(list) > maxWatched {
		return nil, fmt.Errorf("watch: %d panes; at most %d are allowed", len(list), maxWatched)
	}
	ids := []agent.ID{}
	for _, text := range list {
		id, err := agent.Parse(text)
		if err != nil || !id.IsAgent() {
			return nil, fmt.Errorf("watch: %s is not an agent", access.Quote(text))
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// ServeEvents sends the events by SSE.
func (b *Broadcaster) ServeEvents(w http.ResponseWriter, r *http.Request, s Subscription) {
	rc := http.NewResponseController(w)
	c, ok := b.follow(w, r, s, func() { rc.SetWriteDeadline(time.Now()) })
	if !ok {
		return
	}
	defer c.done()
	w.Header().Set("Content-Type", "text/event-stream")
	rc.SetReadDeadline(time.Time{}) // the request has been read; the answer continues
	send := func(b []byte) error {
		rc.SetWriteDeadline(time.Now().Add(c.b.o.WriteWait))
		if c.ended() {
			return errEnded
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		return rc.Flush()
	}
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	out := outbox{write: send, wrap: sseEvent}
	for err := send([]byte("retry: 2000\n\n")); err == nil; {
		select {
		case <-r.Context().Done():
			return
		case <-c.gone:
			return
		case <-beat.C:
			err = send([]byte(": still here\n\n"))
		case <-c.wake:
			err = out.send(c.take())
		}
	}
}

// An outbox writes the events that are due together in few writes.
type outbox struct {
	write func([]byte) error
	wrap  func(b []byte, id int64, event []byte) []byte // adds the event

	event, buf []byte // to reuse their memory
}

func (o *outbox) send(events []event) error {
	for i, e := range events {
		o.event = e.append(o.event[:0])
		o.buf = o.wrap(o.buf, e.id, o.event)
		if len(o.buf) < writeSize && i < len(events)-1 {
			continue
		}
		if err := o.write(o.buf); err != nil {
			return err
		}
		if o.buf = o.buf[:0]; cap(o.buf) > 2*writeSize {
			o.event, o.buf = nil, nil
		}
	}
	return nil
}

func sseEvent(b []byte, id int64, event []byte) []byte {
	b = strconv.AppendInt(append(b, "id: "...), id, 10)
	b = append(append(b, "\ndata: "...), event...)
	return append(b, "\n\n"...)
}
