package mcp

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
)

// A lost is a message that an earlier server had handed over and whose turn was
// cut off by a death.
type lost struct {
	owed
	text string // its rendering, if the conversation never had it
}

// beginsWithin is how long an idle program may be without its session's start
// having been told, until what it holds is taken to be known.
const beginsWithin = 10 * time.Second

// A past is what the events say of a message that is still owed.
type past struct {
	seen bool
	turn string       // the number of the turn that took it
	end  *agent.Event // of its turn
}

// ends takes in the end of a turn.
func (p *past) ends(e agent.Event) {
	if p.seen && p.end == nil && (p.turn == "" || e.ID == "" || p.turn == e.ID) {
		p.end = &e
	}
}

// remember reads the events that came before us.
func (m *Mailman) remember(ctx context.Context) {
	m.past = make(map[string]*past)
	offered := make(map[string]int64)
	for _, o := range m.ledger.list(false) {
		m.past[o.ID], offered[o.ID] = &past{}, o.OfferedMS
	}
	recorded := m.ledger.recorded()
	see := func(id string, ms int64, turn string) {
		if p := m.past[id]; p != nil && ms >= offered[id] {
			p.seen = true
			if turn != "" && p.end == nil {
				p.turn = turn
			}
		}
	}
	err := m.tail.Read(func(e agent.Event) {
		m.hooked = m.hooked || e.Start == m.o.Start
		switch e.Event {
		case agent.EventSeen:
			see(e.ID, e.MS, "")
		case agent.EventPrompt:
			for _, id := range e.IDs {
				see(id, e.MS, e.ID)
			}
			for id, p := range m.past {
				if p.seen && p.end == nil && strings.HasPrefix(e.Text, noticeMark) && strings.Contains(e.Text, naming(id, "")) {
					p.turn = e.ID
				}
			}
		case agent.EventSessionStart:
			m.began = m.began || e.Start == m.o.Start
		case agent.EventStop, agent.EventStopFailed:
			for _, p := range m.past {
				p.ends(e)
			}
			if recorded > 0 && e.MS > recorded {
				m.record(ctx, e)
			}
		}
	})
	m.trouble("events", err)
	m.trouble("settle what was owed", m.ledger.settle(time.Now().UnixMilli()))
}

// restore settles what an earlier server left, as soon as it is known what the
// conversation holds. It reports whether it is done.
func (m *Mailman) restore(ctx context.Context, now time.Time) bool {
	if m.restored {
		return true
	}
	list := m.ledger.list(false)
	if ctx.Err() != nil || len(list) > 0 && !m.knows(now) {
		return false
	}
	m.restored, m.doubts = true, make(map[string]bool)
	var done []owed
	for _, o := range list {
		if m.restoreOne(ctx, o) {
			done = append(done, o)
		}
	}
	m.past = nil
	m.trouble("settle what was owed", m.ledger.settle(0, done...))
	return true
}

// knows reports whether Holds can be asked.
func (m *Mailman) knows(now time.Time) bool {
	switch m.state.State {
	case agent.Busy, agent.Waiting:
		return true
	case agent.Idle:
		return m.began || m.idleFor(now) >= m.pace(beginsWithin)
	}
	return false
}

// doubt reports whether a message that is not filed has been seen nevertheless,
// since the mailbox was taken. If it has not, and was handed to this very program
// by a server that has died since, it may still wait in the program's queue:
// Claude Code starts a server that is gone again when the model calls a tool.
func (m *Mailman) doubt(o owed) (seen bool) {
	p := m.past[o.ID]
	seen = p != nil && p.seen
	if seen || o.Start == m.o.Start {
		m.doubts[o.ID] = seen
	}
	return seen
}

// doubtful reports whether something may wait in the program's queue. What an
// idle program does not hold is not there.
func (m *Mailman) doubtful(now time.Time) bool {
	open := false
	for _, seen := range m.doubts {
		open = open || !seen
	}
	if !open || m.idleFor(now) < m.pace(resends[0]) {
		return open
	}
	maps.DeleteFunc(m.doubts, func(_ string, seen bool) bool { return !seen })
	return false
}

// restoreOne settles one message; true if nothing more is owed about it.
func (m *Mailman) restoreOne(ctx context.Context, o owed) (done bool) {
	e, place, ok, err := m.find(ctx, o)
	switch {
	case err != nil: // nothing is known of it: we may be told to end
		m.trouble("find "+o.ID, err)
		return false
	case !ok:
		return true
	case place != bus.Delivered && !m.doubt(o):
		return false // it is handed over again, perhaps not at once
	}
	return m.resume(ctx, o, e)
}

// resume goes on with a message that an earlier server had handed over and that
// was taken; true if nothing more is owed about it.
func (m *Mailman) resume(ctx context.Context, o owed, e envelope.Envelope) (done bool) {
	var p past
	if known := m.past[o.ID]; known != nil {
		p = *known
	}
	o.turn = p.turn
	if o.Wants && m.answered(ctx, o) {
		return true
	}
	if end, ok := m.pastEnd(o, p); ok {
		if !o.Wants {
			return true
		}
		a := answer{owed: o}
		a.kind, a.text = verdict(end)
		if m.give(ctx, &a) {
			return true
		}
		m.unsent = append(m.unsent, a)
		return false
	}
	switch {
	case m.busy(): // the turn goes on
		m.sight(o.ID)
		m.ledger.took(o.ID, o.turn)
	case !m.m.Runtime.Holds(o.ID):
		m.lost = append(m.lost, lost{o, envelope.Render(e, time.Now())})
	case o.Wants:
		m.lost = append(m.lost, lost{owed: o})
	default:
		return true
	}
	return false
}

// pastEnd is the end of the turn that took the message: an event's, or where none
// was written the conversation's.
func (m *Mailman) pastEnd(o owed, p past) (e agent.Event, ok bool) {
	exact := p.end != nil && p.turn != "" && p.end.ID == p.turn
	if !exact && (p.end != nil || !m.busy()) {
		own, ok := m.m.Runtime.Ended(o.ID, o.turn)
		switch {
		case ok && own.Error != interrupted.Error: // or it is gone on with
			return own, true
		case p.end != nil && own.ID != "" && p.end.ID != "" && own.ID != p.end.ID:
			return e, false // it is another's
		}
	}
	if p.end != nil {
		return *p.end, true
	}
	return e, false
}

// naming is how a notice names a message, or how that begins.
func naming(id string, from agent.ID) string { return id + " from " + string(from) }

// loadLost puts what was lost into a text, as much as fits: what the conversation
// holds is named, the rest handed over again. The words between keep the whole
// from looking like a message that came twice.
func (m *Mailman) loadLost(f *flight) {
	var named, texts []string
	size := 0
	for _, l := range m.lost {
		if size += len(l.text); len(f.lost) > 0 && (size > maxBytes || len(f.lost) == 2*maxBatch) {
			break
		}
		f.lost = append(f.lost, l)
		if l.text == "" {
			named = append(named, naming(l.ID, l.From))
			continue
		}
		f.unseen[l.ID] = true
		texts = append(texts, l.text)
	}
	words := "You were restarted."
	if len(named) > 0 {
		words = "You were restarted in the middle of a turn. Not answered yet: " + strings.Join(named, ", ") +
			". Go on with that, and answer each with reply."
	}
	f.notice = envelope.RenderNotice(words)
	f.text = f.notice
	if m.startup {
		f.startup = true
		f.text = envelope.RenderNotice(m.m.Startup) + "\n" + f.text
	}
	if len(texts) > 0 {
		f.text += "\nThese messages came just before the restart and were lost with it:\n" + strings.Join(texts, "\n")
	}
}

// find looks for a message that came to the agent and was not filed unread, and
// says where it lies now; ok is false if it is nowhere. With an error that is not
// known.
func (m *Mailman) find(ctx context.Context, o owed) (e envelope.Envelope, p bus.Place, ok bool, err error) {
	for _, p := range []bus.Place{bus.Claimed, bus.Inbox, bus.Delivered} {
		names, err := m.o.Bus.Names(m.o.Agent, p)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return e, "", false, err
		}
		for i := len(names) - 1; i >= max(0, len(names)-mostBack); i-- {
			if err := ctx.Err(); err != nil {
				return e, "", false, err
			}
			entry, err := m.o.Bus.Read(m.o.Agent, p, names[i])
			if err == nil && entry.Err == nil && entry.Why == "" && entry.Envelope.ID == o.ID && entry.Envelope.From == o.From {
				return entry.Envelope, p, true, nil
			}
		}
	}
	return e, "", false, nil
}
