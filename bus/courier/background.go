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
	works []string    // the ids of what its turns have begun
	end   agent.Event // of its last turn
	until time.Time   // then that is the answer; zero: as long as the work goes on
}

// Serves is for how long commands in the background keep a message from being answered. One
// that runs longer may be meant to run for good, such as a server.
const Serves = 10 * time.Minute

// begun returns the ids of the works that were not there before.
func begun(before, now []agent.Work) (ids []string) {
	for _, w := range now {
		if !slices.ContainsFunc(before, func(o agent.Work) bool { return o.ID == w.ID }) {
			ids = append(ids, w.ID)
		}
	}
	return ids
}

// ends notes the end of a turn of the message's, which has begun these works.
func (d *deferral) ends(e agent.Event, begun []string) {
	d.works, d.end, d.until = append(d.works, begun...), e, time.Time{}
	if !slices.ContainsFunc(e.Background, func(w agent.Work) bool { return d.has(w) && w.Kind != agent.Command }) {
		d.until = time.UnixMilli(e.MS).Add(Serves)
	}
}

func (d *deferral) has(w agent.Work) bool { return slices.Contains(d.works, w.ID) }

// goesOn reports whether some of the works are left.
func (d *deferral) goesOn(e agent.Event) bool { return slices.ContainsFunc(e.Background, d.has) }

// reported reports whether a turn that the program began by itself is about these works.
func (d *deferral) reported(e agent.Event) bool {
	return e.Self && (len(e.Background) == 0 || slices.ContainsFunc(e.Background, d.has))
}

// leaves notes what the end of a turn says of work in the background. A message waits only
// for what its own turns have begun, and until one of them has the result: another turn may
// end in between.
func (m *Courier) leaves(ctx context.Context, e agent.Event) {
	ids := begun(m.background, e.Background)
	m.background = e.Background
	m.alone.ends(e, ids)
	for _, o := range m.ledger.seen() {
		d, waits := m.deferred[o.ID]
		switch own := o.turn == "" || o.turn == e.ID; {
		case !own, !waits && (len(ids) == 0 || !o.Wants || m.answers.settling(o) || m.answers.replied(ctx, o)):
		case !waits:
			m.wait(o.ID, &deferral{})
			m.deferred[o.ID].ends(e, ids)
		default:
			if d.ends(e, ids); !d.goesOn(e) {
				delete(m.deferred, o.ID)
			}
		}
	}
}

// wait defers a message until the work in the background has ended.
func (m *Courier) wait(id string, d *deferral) {
	if m.deferred == nil {
		m.deferred = make(map[string]*deferral)
	}
	m.deferred[id] = d
}

// serving answers what waits for commands that still run, and says which these are.
func (m *Courier) serving(ctx context.Context, now time.Time) {
	for _, o := range m.ledger.seen() {
		d, waits := m.deferred[o.ID]
		if !waits || d.until.IsZero() || now.Before(d.until) {
			continue
		}
		a := answer{Message: o}
		a.kind, a.text = verdict(d.end)
		a.text += "\n\n[netsky] Still running in the background: " + agent.Works(d.end.Background)
		m.finish(ctx, a)
	}
}

// letGo cancels a message that waits only for work in the background; ok is false if it is
// none. The work goes on.
func (m *Courier) letGo(ctx context.Context, c cancel) (ok bool) {
	list := m.ledger.seen()
	i := slices.IndexFunc(list, func(o Message) bool { return o.ID == c.about })
	d, waits := m.deferred[c.about]
	if i < 0 || !waits || m.program.busy() {
		return false
	}
	a := answer{Message: list[i], kind: envelope.KindError, cancelled: true,
		text: "cancelled by " + string(c.by) + " after its turn; in the background goes on: " + agent.Works(d.end.Background)}
	m.finish(ctx, a)
	return true
}

// finish answers a message that waited for work in the background.
func (m *Courier) finish(ctx context.Context, a answer) {
	delete(m.deferred, a.ID)
	if m.answers.give(ctx, a) {
		m.answers.settle(0, a.Message)
	}
	if len(m.deferred) == 0 && !m.program.busy() {
		m.program.over()
	}
}

// cutShort is the answer to a message whose work in the background ended with its program.
func cutShort(e agent.Event) agent.Event {
	e.Text += "\n\n[netsky] This was before its work was done: what it had left in the background ended with its program (" + agent.Works(e.Background) + ")."
	return e
}
