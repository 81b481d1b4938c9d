package mcp

import (
	"context"
	"fmt"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/store"
)

// How long the program may be idle with a turn whose end was not told: no hook
// tells of a turn that a person breaks off, nor does one that was killed. The
// conversation may, which is written a moment later.
const (
	abandonedAfter  = 2 * time.Second
	abandonedSilent = 6 * time.Second // it does not tell either
)

// noticeMark is how a prompt's line begins that begins with a notice.
const noticeMark = `<channel source="netsky">`

// event takes in what a process beside us saw.
func (m *Mailman) event(ctx context.Context, e agent.Event) {
	if e.Event == agent.EventSeen {
		m.heard, m.looks = time.Now(), time.Time{}
		m.about(e.ID)
		m.sight(e.ID)
		return
	}
	if e.Start != "" && e.Start != m.o.Start {
		return // another life's
	}
	m.heard, m.looks, m.hooked = time.Now(), time.Time{}, true
	switch e.Event {
	case agent.EventSessionStart:
		m.began = true
		m.group.Go(func() { m.putDown(ctx, m.conversation(e)...) })
		if e.Text == "clear" { // nothing of before is known to it
			m.startup = m.m.Startup != ""
		}
	case agent.EventPrompt:
		m.prompted(e)
	case agent.EventStop, agent.EventStopFailed:
		m.ended(ctx, e)
	}
}

// prompted is the beginning of a turn, or something more for it.
func (m *Mailman) prompted(e agent.Event) {
	m.open = true
	for _, id := range e.IDs {
		m.about(id)
		m.sight(id)
		m.ledger.took(id, e.ID)
	}
	if f := m.flight; f != nil && f.notice != "" && strings.HasPrefix(e.Text, noticeMark) {
		m.arrived()
		for _, l := range f.lost {
			m.ledger.took(l.ID, e.ID)
		}
	}
}

// about names the turn by its first message.
func (m *Mailman) about(id string) {
	if m.turnOf == "" {
		m.turnOf = id
	}
}

// ended is the end of a turn: what it took is settled.
func (m *Mailman) ended(ctx context.Context, e agent.Event) {
	if f := m.flight; f != nil && f.way == byHand {
		m.arrived()
	}
	m.record(ctx, e)
	m.end = e
	m.close(ctx, e)
}

// abandoned settles a turn that has ended without a word of it.
func (m *Mailman) abandoned(ctx context.Context, now time.Time) {
	idle := m.idleFor(now)
	if m.open && idle >= m.pace(abandonedAfter) && (idle >= m.pace(abandonedSilent) || m.allEnded()) {
		m.close(ctx, interrupted)
	}
}

// allEnded reports whether the conversation tells how the turn ended of each
// message that wants an answer.
func (m *Mailman) allEnded() bool {
	asked := m.ends()
	for _, o := range m.ledger.list(true) {
		if _, ok := asked(o); o.Wants && !ok {
			return false
		}
	}
	return true
}

// ends makes a function that asks the conversation how the turn ended that took a
// message, once for each turn.
func (m *Mailman) ends() func(owed) (agent.Event, bool) {
	type answer struct {
		e  agent.Event
		ok bool
	}
	known := make(map[string]answer)
	return func(o owed) (agent.Event, bool) {
		key := o.turn
		if key == "" {
			key = "of " + o.ID
		}
		a, found := known[key]
		if !found {
			a.e, a.ok = m.m.Runtime.Ended(o.ID, o.turn)
			known[key] = a
		}
		return a.e, a.ok
	}
}

// record puts a turn's end on record, with what it took.
func (m *Mailman) record(ctx context.Context, e agent.Event) {
	about := m.turnOf
	if m.o.Records == nil {
		return
	}
	log := store.AddLog{
		Key: fmt.Sprintf("turn-%s-%d", m.o.Agent, e.MS), Time: store.At(time.UnixMilli(e.MS)),
		Part: "claude", Actor: m.o.Agent, About: about, Text: "turn completed",
	}
	if about == "" {
		log.About = e.Session
	}
	if e.Event == agent.EventStopFailed {
		log.Level, log.Text = store.LevelWarn, envelope.Line("turn failed: "+failure(e), 200)
	}
	m.group.Go(func() {
		if u := m.took(ctx, e); u != (agent.Usage{}) {
			log.Fields = map[string]any{
				"input": u.Input, "output": u.Output, "cached": u.CacheRead, "cache_write": u.CacheWrite,
				"requests": u.Requests, "context": u.ContextNow,
			}
		}
		m.putDown(ctx, append(m.conversation(e), log)...)
	})
}

// conversation says which one a start has, as far as an event tells it.
func (m *Mailman) conversation(e agent.Event) []store.Op {
	if e.Start == "" || e.Session == "" {
		return nil
	}
	return []store.Op{store.SessionState{Start: e.Start, Actor: m.o.Agent, Thread: e.Session, Time: store.At(time.UnixMilli(e.MS))}}
}

func (m *Mailman) putDown(ctx context.Context, ops ...store.Op) {
	if m.o.Records == nil || len(ops) == 0 {
		return
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordWithin)
	defer cancel()
	// What the database does not take waits in the spool, which others tell of.
	m.o.Records.Record(within, ops...)
}

// recordWithin is what a record may take: Claude Code kills a server that has not
// ended half a second after it was told to.
const recordWithin = 300 * time.Millisecond

// took is what a turn took, in tokens. A program may have to be waited for until
// it has written that down.
func (m *Mailman) took(ctx context.Context, e agent.Event) agent.Usage {
	if r, ok := m.m.Runtime.(interface {
		Usage(context.Context, agent.Event) agent.Usage
	}); ok {
		return r.Usage(ctx, e)
	}
	if e.Usage != nil {
		return *e.Usage
	}
	return agent.Usage{}
}

func failure(e agent.Event) string {
	return strings.Trim(e.Error+": "+e.Text, ": ")
}
