package courier

import (
	"context"
	"slices"
	"strings"
	"time"

	"netsky/agent"
)

// noticeMark begins a prompt's line that begins with a notice.
const noticeMark = `<channel source="netsky">`

// remember reads the events from before this courier ran.
func (m *Courier) remember(ctx context.Context) {
	m.history.recall()
	recorded, forgot := m.ledger.recorded(), false
	err := m.o.Events.Read(func(e Event) {
		own := e.Start == m.o.Start
		m.program.hooked = m.program.hooked || own
		switch e.Event.Event {
		case agent.EventSeen:
			m.history.see(e.ID, e.Event)
		case agent.EventPrompt:
			m.alone.begins(e.Event)
			if own && strings.HasPrefix(e.Text, noticeMark) {
				m.preface.startup, m.preface.facts, forgot = false, false, false
			}
			m.history.prompted(e.Event)
		case agent.EventSessionStart:
			m.program.began = m.program.began || own
			forgot = own && m.preface.forgot(e.Text) || forgot
		case agent.EventStop, agent.EventStopFailed:
			ids := m.deferrals.begun(e.Event)
			m.alone.ends(e.Event, ids)
			for _, p := range m.history.past {
				p.ends(e.Event, ids)
			}
			if recorded > 0 && e.MS > recorded {
				m.records.turn(ctx, e.Event, m.program.turnOf)
			}
		}
	})
	m.trouble("events", err)
	if forgot {
		m.preface.forgotten()
	}
	m.answers.settle(time.Now().UnixMilli())
	m.history.left = m.ledger.list()
	if o, ok := (Ledger{Messages: m.history.left}).limited(); ok {
		m.gate.recall(o)
	}
}

// readEvents handles what has happened in the program.
func (m *Courier) readEvents(ctx context.Context) {
	m.trouble("events", m.o.Events.Read(func(e Event) { m.event(ctx, e) }))
}

// event handles what happened in the program.
func (m *Courier) event(ctx context.Context, e Event) {
	switch e.Event.Event {
	case EventState:
		m.program.stir()
		return
	case agent.EventSeen:
		m.program.heard, m.program.looks = time.Now(), time.Time{}
		m.program.about(e.ID)
		was := m.program.open
		if m.offers.sight(e.ID); m.program.open && !was {
			m.program.opened = e.MS
		}
		return
	}
	if e.Start != "" && e.Start != m.o.Start {
		return // of another start
	}
	m.program.heard, m.program.looks, m.program.hooked = time.Now(), time.Time{}, true
	switch e.Event.Event {
	case agent.EventSessionStart:
		m.program.began = true
		m.records.session(ctx, e.Event)
		if m.preface.forgot(e.Text) {
			m.preface.forgotten()
		}
		if e.Cut {
			m.history.cut(m.offers.flight)
			m.offers.flight = nil
		}
	case agent.EventPrompt:
		m.prompted(ctx, e.Event)
	case agent.EventTool:
		m.gate.served(ctx, m.program.opened)
	case agent.EventStop:
		m.gate.served(ctx, m.program.opened)
		m.ended(ctx, e)
	case agent.EventStopFailed:
		m.ended(ctx, e)
	}
}

// prompted handles the beginning of a turn, or further input to it.
func (m *Courier) prompted(ctx context.Context, e agent.Event) {
	if m.alone.begins(e) {
		defer m.curb(ctx, e)
	}
	if !m.program.open {
		m.program.begins(e.MS)
	}
	f := m.offers.flight
	for _, id := range e.IDs {
		m.program.about(id)
		m.offers.sight(id)
		m.ledger.took(id, e.ID)
	}
	for id, d := range m.deferrals.list {
		if d.reported(e) {
			m.ledger.took(id, e.ID)
		}
	}
	if f == nil || f != m.offers.flight || f.notice == "" {
		return
	}
	named := func(l lost) bool { return slices.Contains(e.IDs, l.ID) }
	if strings.HasPrefix(e.Text, noticeMark) || len(f.lost) > 0 && !slices.ContainsFunc(f.lost, func(l lost) bool { return !named(l) }) {
		m.offers.arrived()
		for _, l := range f.lost {
			m.ledger.took(l.ID, e.ID)
		}
		return
	}
	f.calm = false // it is somebody else's turn
}

// ended handles the end of a turn: it settles what the turn took.
func (m *Courier) ended(ctx context.Context, e Event) {
	if f := m.offers.flight; f != nil && f.way == byHand {
		m.offers.arrived()
	}
	m.records.turn(ctx, e.Event, m.program.turnOf)
	m.program.end = e.Event
	if e.Again {
		m.againLater()
		return
	}
	begun := m.deferrals.begun(e.Event)
	m.alone.ends(e.Event, begun)
	m.deferrals.ends(ctx, e.Event, begun)
	m.close(ctx, e)
}

// againLater presents what a turn took to a later one: the turn was given up for a
// temporary reason.
func (m *Courier) againLater() {
	m.program.over()
	for _, o := range m.ledger.interrupt() {
		if !m.answers.settling(o) {
			m.backlog.lost = append(m.backlog.lost, lost{Message: o})
		}
	}
}

// close ends the turn: every message that it took is answered or needs no answer.
func (m *Courier) close(ctx context.Context, e Event) {
	m.program.over()
	asked := m.talk.ends(ctx)
	var done []Message
	var held []failed
	for _, o := range m.ledger.seen() {
		if m.answers.settling(o) {
			continue
		}
		if _, waits := m.deferrals.list[o.ID]; waits {
			m.program.open = true
			continue
		}
		end, ok, err := endOf(o, e.Event, asked)
		if !ok {
			if err == nil {
				m.ledger.late(o.ID)
			}
			m.program.open = true
			continue
		}
		if noAnswer(end) && !m.answers.replied(ctx, o) {
			held = append(held, failed{o, end})
			continue
		}
		if !o.Wants || e.Deferred || m.answers.give(ctx, verdict(o, end)) {
			done = append(done, o)
		}
	}
	if len(held) > 0 {
		m.backlog.hold(ctx, held...)
	} else if ofAccount(e.Event) { // of a turn that took no message
		m.gate.trip(ctx, *e.Fault)
	} else {
		m.gate.release(ctx)
	}
	m.answers.settle(e.MS, done...)
}

// abandoned settles a turn that has ended without a report.
func (m *Courier) abandoned(ctx context.Context, now time.Time) {
	idle, pace := m.program.idleFor(now), m.traits.Pace
	m.deferrals.serving(ctx, now)
	if len(m.deferrals.list) > 0 && len(m.program.Works) > 0 {
		return
	}
	if !m.program.open || idle < pace.Told {
		return
	}
	heard := m.program.heard
	m.readEvents(ctx) // a turn may have begun and ended while the state was asked for
	if m.program.heard.Equal(heard) && (idle >= pace.Silent || m.allEnded(ctx)) {
		clear(m.deferrals.list)
		m.close(ctx, Event{Event: interrupted})
	}
}

// allEnded reports whether the conversation shows how the turn ended of each message that
// wants an answer.
func (m *Courier) allEnded(ctx context.Context) bool {
	asked := m.talk.ends(ctx)
	for _, o := range m.ledger.seen() {
		if _, ok, err := asked(o); o.Wants && (!ok || err != nil) {
			return false
		}
	}
	return true
}
