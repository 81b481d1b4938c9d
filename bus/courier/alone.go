package courier

import (
	"context"
	"fmt"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
)

// MostAlone is how many turns in a row a program may begin by itself before the next one is
// interrupted: turns that no message, no schedule and nobody at its pane asked for. The result
// of work that an asked turn has left in the background is asked for; what such a turn begins
// in its turn is not.
const MostAlone = 50

// alone counts them.
type alone struct {
	turn    string          // the running one
	own     bool            // it is the program's own
	asked   bool            // somebody asked for it
	turns   int             // of its own, in a row
	results map[string]bool // works whose results are asked for
	since   int64           // when the first of too many was interrupted, in milliseconds; 0: none was
}

// begins notes what begins a turn, or comes to one. It reports whether that is one too many.
func (a *alone) begins(e agent.Event) (tooMany bool) {
	if e.ID == "" || e.ID != a.turn {
		a.turn, a.own, a.asked = e.ID, false, false
	}
	switch {
	case !e.Self && (len(e.IDs) > 0 || e.Text != ""):
		a.own, a.asked, a.turns, a.since = false, true, 0, 0
	case e.Self && !a.asked:
		a.own = true
		for _, w := range e.Background {
			a.own = a.own && !a.results[w.ID]
			delete(a.results, w.ID)
		}
		return a.own && a.turns >= MostAlone
	}
	return false
}

// ends notes the end of a turn, which has begun these works in the background.
func (a *alone) ends(e agent.Event, begun []string) {
	switch {
	case a.asked:
		if a.results == nil {
			a.results = make(map[string]bool)
		}
		for _, id := range begun {
			a.results[id] = true
		}
	case a.own, e.Self:
		a.turns++
	}
	a.turn, a.own, a.asked = "", false, false
}

// curb interrupts a turn that is one too many, and says so once. A text that is about to come
// to the turn asks for it.
func (m *Courier) curb(ctx context.Context, e agent.Event) {
	if m.stopping || m.offers.flight != nil {
		return
	}
	if m.alone.since == 0 {
		m.alone.since, m.program.looks = e.MS, time.Time{}
		m.group.Go(func() { m.tellAlone(ctx, e) })
	}
	for _, o := range m.ledger.seen() {
		if d, waits := m.deferrals.list[o.ID]; waits && d.reported(e) {
			a := verdict(o, d.end)
			a.text += fmt.Sprintf("\n\n[netsky] This was before its work was done: after %d turns in a row that nobody asked for, the next was interrupted.", MostAlone)
			m.deferrals.finish(ctx, a)
		}
	}
	m.breakOff(ctx, m.o.Agent, func() error {
		if h, ok := m.o.Runtime.(Halter); ok && h.Halt(ctx) == nil {
			m.o.Log("what it worked on by itself is paused", nil)
		}
		return m.o.Runtime.Interrupt(ctx, m.o.Agent)
	})
}

// tellAlone tells the owner that the agent's own turns are interrupted from now on.
func (m *Courier) tellAlone(ctx context.Context, e agent.Event) {
	text := fmt.Sprintf("%s began %d turns in a row that no message, no schedule and nobody at its pane asked for. "+
		"The next one was interrupted, and so is each that follows, until a message or a typed text asks for something. Its conversation is kept: "+
		"`netsky attach %[1]s` shows what it does, a message to it lets it go on, `netsky down %[1]s` ends it.", m.o.Agent, MostAlone)
	m.o.Log(text, nil)
	m.records.warn(ctx, fmt.Sprintf("alone-%s-%d", m.o.Agent, e.MS), e.Session, "interrupted: "+unasked().String(), time.UnixMilli(e.MS))
	_, err := m.o.Bus.Send(ctx, envelope.Envelope{
		ID: fmt.Sprintf("alone-%s-%d", m.o.Agent, e.MS), From: m.o.Agent, To: agent.Owner, Kind: envelope.KindNotice, Text: envelope.SafeText(text), Via: "code",
	})
	if err != nil {
		m.o.Log("tell the owner of turns that nobody asked for", err)
	}
}

func unasked() agent.Fault {
	return agent.Fault{Reason: agent.Unasked, Text: fmt.Sprintf("%d in a row; the next is interrupted", MostAlone)}
}

// curbed returns the report of a program that may begin no turn by itself.
func (a *alone) curbed(r agent.Report) agent.Report {
	if a.since == 0 || r.State != agent.Idle {
		return r
	}
	r.State, r.SinceMS, r.Fault, r.Evidence = agent.Blocked, a.since, unasked(), "the beginnings of its turns"
	r.Detail = r.Fault.String()
	return r
}
