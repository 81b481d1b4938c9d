package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
)

const (
	handed = 10 * time.Second // after which a tool's result is taken to have arrived
	// channelWait is how long a notification may go unseen before channels are
	// taken to be off.
	channelWait = 5 * time.Second
)

// resends is how long an idle program may leave a text unseen before it is handed
// over again, byte for byte the same; the last goes on.
var resends = [...]time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second}

// A flight is the one text that is on its way.
type flight struct {
	list    []*bus.Delivery // the messages in it
	lost    []lost          // or what an earlier conversation left
	unseen  map[string]bool // by ID, until the program has been seen with it
	text    string
	notice  string    // how the text begins, where it holds no message
	startup bool      // the startup text stands in it
	way     way       // by which it went
	pushed  time.Time // last
	times   int
	stirred bool // the program has been busy since, and no hook has ever said a word
}

type way int

const (
	byPush way = iota
	byChannel
	byHand // the inbox tool's result
)

// A closed is a way that is closed, and how the other is gone.
type closed struct {
	is    bool
	next  time.Time // when it is tried again
	wait  time.Duration
	since time.Time
}

const (
	pointEvery = time.Minute // at most
	pointAgain = 5 * time.Second
)

// launch hands over what waits. It is written down before.
func (m *Mailman) launch(ctx context.Context) {
	f := &flight{unseen: make(map[string]bool)}
	if len(m.lost) > 0 {
		m.loadLost(f)
	} else if !m.load(ctx, f, m.pending) {
		return
	}
	if err := m.writeDown(f); err != nil {
		m.trouble("what is owed", err)
		return
	}
	m.trouble("what is owed", nil)
	m.pending, m.lost = m.pending[len(f.list):], m.lost[len(f.lost):]
	m.flight = f
	m.tokens--
	m.turning(time.Now())
	m.push(ctx)
}

// load puts messages into a text; false if the conversation holds them already.
func (m *Mailman) load(ctx context.Context, f *flight, list []*bus.Delivery) bool {
	var fresh []*bus.Delivery
	for _, d := range list {
		e := d.Envelope()
		o, offered := m.ledger.offered(e)
		if !m.doubts[e.ID] && !(offered && m.m.Runtime.Holds(e.ID)) {
			fresh = append(fresh, d)
			continue
		}
		known := m.doubts[e.ID]
		delete(m.doubts, e.ID)
		m.pending = without(m.pending, d)
		m.file(d)
		if known || o.Start == m.o.Start {
			m.sight(e.ID)
		} else if m.resume(ctx, o, e) { // taken by a program that has died since
			m.trouble("settle what was owed", m.ledger.settle(0, o))
		}
	}
	if len(fresh) == 0 {
		return false
	}
	f.list = fresh
	texts := make([]string, 0, len(fresh)+1)
	if m.startup {
		f.startup = true
		texts = append(texts, envelope.RenderNotice(m.m.Startup))
	}
	for _, d := range fresh {
		f.unseen[d.Envelope().ID] = true
		texts = append(texts, d.Rendered())
	}
	f.text = strings.Join(texts, "\n")
	if m.channel {
		f.way = byChannel
	}
	return true
}

func without(list []*bus.Delivery, d *bus.Delivery) (rest []*bus.Delivery) {
	for _, o := range list {
		if o != d {
			rest = append(rest, o)
		}
	}
	return rest
}

func (m *Mailman) writeDown(f *flight) error {
	list := make([]owed, 0, len(f.list))
	for _, d := range f.list {
		o := owedOf(d.Envelope())
		o.Start = m.o.Start
		list = append(list, o)
	}
	return m.ledger.offer(list)
}

// push sends the flight's text, for the first time or again.
func (m *Mailman) push(ctx context.Context) {
	f := m.flight
	f.times++
	f.pushed, f.stirred = time.Now(), false
	within, cancel := context.WithTimeout(ctx, pushWithin)
	defer cancel()
	var err error
	if f.way == byChannel {
		err = m.notify(within, f)
	} else {
		err = m.m.Runtime.Push(within, f.text)
	}
	switch {
	case err == nil:
		m.trouble("hand over mail", nil)
		m.closed = closed{}
	case ctx.Err() != nil:
	case errors.Is(err, ErrNotReady):
		m.ground()
	case f.way == byChannel:
		m.trouble("channel", fmt.Errorf("mail goes by the messaging socket: %w", err))
		m.channel = false
		m.ground()
	case Refused(err):
		m.trouble("hand over mail", err)
		m.ground()
		if !m.closed.is {
			m.closed = closed{is: true, since: time.Now()}
		}
	default: // perhaps it was taken: tried again like one that was not seen
		m.trouble("hand over mail", err)
	}
}

// ground takes the flight back, as nothing of it was taken.
func (m *Mailman) ground() {
	f := m.flight
	m.flight = nil
	m.tokens++
	m.pending = append(f.list[:len(f.list):len(f.list)], m.pending...)
	m.lost = append(f.lost[:len(f.lost):len(f.lost)], m.lost...)
}

// notify pushes each message of the flight as a notification. What the program
// makes of it looks like our own rendering.
func (m *Mailman) notify(ctx context.Context, f *flight) error {
	for i, d := range f.list {
		e := d.Envelope()
		_, body, _ := strings.Cut(d.Rendered(), "\n")
		body = strings.TrimSuffix(body, "\n</channel>")
		if f.startup && i == 0 {
			body = m.m.Startup + "\n\n" + body
		}
		meta := map[string]string{
			"chat_id": string(e.From), "from": string(e.From), "ts": e.Time.UTC().Format(time.RFC3339Nano), "id": e.ID,
		}
		if err := m.m.Notify(ctx, body, meta); err != nil {
			return err
		}
	}
	return nil
}

// point says in the pane that mail waits, as the other way is closed.
func (m *Mailman) point(ctx context.Context, now time.Time) {
	c := &m.closed
	if m.state.State != agent.Idle {
		c.next = now.Add(m.pace(pointAgain))
		return
	}
	within, cancel := context.WithTimeout(ctx, pushWithin)
	defer cancel()
	err := m.m.Runtime.Point(within, max(len(m.pending)+m.waiting(), 1))
	m.trouble("say in the pane that mail waits", err)
	if err == nil {
		c.next, c.wait = now.Add(m.pace(pointEvery)), 0
		return
	}
	c.wait = min(max(2*c.wait, pointAgain), pointEvery)
	c.next = now.Add(m.pace(c.wait))
}

// waiting counts what lies in the inbox.
func (m *Mailman) waiting() int {
	n, err := m.o.Bus.Count(m.o.Agent, bus.Inbox)
	if err != nil {
		return 0
	}
	return n
}
