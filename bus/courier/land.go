package courier

import (
	"context"
	"errors"
	"fmt"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
)

// pursue follows up a text that has been offered.
func (m *Courier) pursue(ctx context.Context, now time.Time) time.Time {
	f := m.flight
	if f.way == byHand {
		if due := f.pushed.Add(m.traits.Pace.Read); now.Before(due) {
			return due
		}
		m.arrived()
		return now
	}
	unseen := m.traits.Pace.Unseen
	wait := unseen[min(f.times, len(unseen))-1]
	idle := m.program.idleFor(now)
	if now.Sub(f.pushed) < wait || idle < wait {
		return now.Add(m.traits.Pace.Busy)
	}
	m.program.stir() // it may have started a turn since
	if m.look(ctx, now); m.program.State != agent.Idle {
		return m.program.looks
	}
	held, err := m.held(ctx, f)
	switch {
	case err != nil:
		return now.Add(wait)
	case held:
		m.arrived()
		m.unreported(ctx, f)
	case f.onlyNames() && f.calm && m.program.end.MS >= f.began.UnixMilli():
		m.arrived()
		m.unreported(ctx, f)
	case f.stirred && (f.times > 1 && !m.program.hooked || f.onlyNames() && f.turns >= maxUnreported):
		m.o.Log("deliver mail", errors.New("a turn ran but no hook reported it; assuming the message arrived"))
		m.arrived()
	case now.Before(m.gate.barred), len(f.lost) == 0 && m.backlog.holding(): // what is held goes first
		m.ground()
		return now
	case f.way == byChannel:
		m.o.Log("channel", fmt.Errorf("a notification was not seen within %v; using the other delivery path from now on", wait))
		m.path.channel, f.way = false, byPush
		m.push(ctx)
	case m.path.token(now) > 0:
		return now.Add(m.path.token(now))
	default:
		m.path.tokens--
		m.push(ctx)
	}
	return now.Add(m.traits.Pace.Busy)
}

// onlyNames reports whether the text brings no message, so that the conversation can't be
// asked whether it holds it.
func (f *flight) onlyNames() bool { return f.notice != "" && len(f.unseen) == 0 }

// maxUnreported is how often a text that only names messages is offered again although a
// turn has run since that no hook has reported.
const maxUnreported = 2

// unreported settles a flight of which only the hook of the prompt was lost, not that of
// the turn's end.
func (m *Courier) unreported(ctx context.Context, f *flight) {
	since, turn := f.pushed, ""
	if f.calm {
		since = f.began // no other turn can have ended since
	}
	ended := m.program.end.MS >= since.UnixMilli()
	if ended {
		turn = m.program.end.ID
	}
	for _, l := range f.lost {
		if l.text != "" { // the conversation knows the turn even if no hook reported its end
			if e, _, err := m.o.Runtime.Ended(ctx, l.ID, ""); err == nil && e.ID != "" {
				turn = e.ID
			}
		}
	}
	for _, l := range f.lost {
		m.ledger.took(l.ID, turn) // not the one that was cut off
	}
	if m.program.open && ended {
		m.close(ctx, Event{Event: m.program.end})
	}
}

// held reports whether the conversation holds all messages of the flight.
func (m *Courier) held(ctx context.Context, f *flight) (bool, error) {
	var list []envelope.Envelope
	for _, d := range f.list {
		if f.unseen[d.Envelope().ID] {
			list = append(list, d.Envelope())
		}
	}
	again := 0
	for _, l := range f.lost {
		switch {
		case l.State == StateHeld: // the conversation holds it from the turn that failed
			e, _, err := m.o.Runtime.Ended(ctx, l.ID, "")
			if err != nil || e.ID == "" || e.ID == l.Held.Turn {
				return false, err
			}
			again++
		case l.text != "": // possibly seen, without an event for the prompt
			list = append(list, l.envelope)
		}
	}
	for _, e := range list {
		if held, err := m.talk.holdsUnseen(ctx, e); !held || err != nil {
			return false, err
		}
	}
	return len(list)+again > 0, nil
}

// sight records that the program has been seen with a message.
func (m *Courier) sight(id string) {
	if _, ok := m.history.doubts[id]; ok {
		m.history.doubts[id] = true
	}
	if m.ledger.sight(id) {
		m.program.open = true // until the turn's end is reported
	}
	f := m.flight
	if f == nil || !f.unseen[id] {
		m.unpend(id)
		return
	}
	delete(f.unseen, id)
	for _, d := range f.list {
		if d.Envelope().ID == id {
			m.answers.file(d)
		}
	}
	if len(f.unseen) == 0 && f.notice == "" {
		m.landed()
	}
}

// unpend files a message that was offered over a connection that broke, and with which
// the program has been seen since.
func (m *Courier) unpend(id string) {
	for _, d := range m.backlog.pending {
		if e := d.Envelope(); e.ID == id {
			if _, offered := m.ledger.offered(e); offered {
				delete(m.history.doubts, id)
				m.backlog.pending = without(m.backlog.pending, d)
				m.answers.file(d)
			}
		}
	}
}

// arrived marks the whole flight as seen.
func (m *Courier) arrived() {
	f := m.flight
	for id := range f.unseen {
		m.sight(id)
	}
	if m.flight == f {
		m.landed()
	}
}

// landed ends the flight.
func (m *Courier) landed() {
	f := m.flight
	if f.prefaced {
		m.preface.told()
	}
	for _, l := range f.lost {
		if m.ledger.sight(l.ID) {
			m.program.open = true
		}
	}
	m.flight = nil
}
