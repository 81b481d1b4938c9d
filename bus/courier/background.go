package courier

import (
	"context"
	"slices"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
)

// A deferral keeps a message whose turn has ended and has left work in the background: the
// program begins a turn with the result by itself, and the last text then is the answer.
type deferral struct {
	end   agent.Event // of its last turn
	until time.Time   // then that is the answer; zero: as long as the work goes on
}

// Serves is for how long commands in the background keep a message from being answered. One
// that runs longer may be meant to run for good, such as a server.
const Serves = 10 * time.Minute

// leaves notes what the end of a turn says of work in the background. A message waits only
// for what its own turn has begun.
func (m *Courier) leaves(ctx context.Context, e agent.Event) {
	begun := slices.ContainsFunc(e.Background, func(w agent.Work) bool {
		return !slices.ContainsFunc(m.background, func(o agent.Work) bool { return o.ID == w.ID })
	})
	if m.background = e.Background; len(e.Background) == 0 {
		clear(m.deferred)
		return
	}
	for _, o := range m.ledger.list(true) {
		own := o.turn == "" || o.turn == e.ID
		if _, waits := m.deferred[o.ID]; own && o.Wants && (waits || begun && !m.settling(o) && !m.replied(ctx, o)) {
			m.wait(o.ID, e)
		}
	}
}

// wait defers a message until the work in the background has ended.
func (m *Courier) wait(id string, e agent.Event) {
	d := deferral{end: e}
	if !slices.ContainsFunc(e.Background, func(w agent.Work) bool { return w.Kind != agent.Command }) {
		d.until = time.UnixMilli(e.MS).Add(Serves)
	}
	if m.deferred == nil {
		m.deferred = make(map[string]deferral)
	}
	m.deferred[id] = d
}

// serving answers what waits for commands that still run, and says which these are.
func (m *Courier) serving(ctx context.Context, now time.Time) {
	for _, o := range m.ledger.list(true) {
		d, waits := m.deferred[o.ID]
		if !waits || d.until.IsZero() || now.Before(d.until) {
			continue
		}
		a := answer{owed: o}
		a.kind, a.text = verdict(d.end)
		a.text += "\n\n[netsky] Still running in the background: " + agent.Works(d.end.Background)
		m.finish(ctx, a)
	}
}

// letGo cancels a message that waits only for work in the background; ok is false if it is
// none. The work goes on.
func (m *Courier) letGo(ctx context.Context, c cancel) (ok bool) {
	list := m.ledger.list(true)
	i := slices.IndexFunc(list, func(o owed) bool { return o.ID == c.about })
	d, waits := m.deferred[c.about]
	if i < 0 || !waits || m.busy() {
		return false
	}
	a := answer{owed: list[i], kind: envelope.KindError, cancelled: true,
		text: "cancelled by " + string(c.by) + " after its turn; in the background goes on: " + agent.Works(d.end.Background)}
	m.finish(ctx, a)
	return true
}

// finish answers a message that waited for work in the background.
func (m *Courier) finish(ctx context.Context, a answer) {
	delete(m.deferred, a.ID)
	if m.give(ctx, &a) {
		m.settle(0, a.owed)
	} else {
		m.unsent, m.tries = append(m.unsent, a), time.Time{}
	}
	if len(m.deferred) == 0 && !m.busy() {
		m.open, m.turnOf = false, ""
	}
}

// cutShort is the answer to a message whose work in the background ended with its program.
func cutShort(e agent.Event) agent.Event {
	e.Text += "\n\n[netsky] This was before its work was done: what it had left in the background ended with its program (" + agent.Works(e.Background) + ")."
	return e
}
