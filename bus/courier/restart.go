package courier

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
)

// A past is what the events report about a message that is still owed.
type past struct {
	seen bool
	turn string       // the number of the turn that took it
	end  *agent.Event // of its turn
	left *deferral    // its turn left work in the background of which there is no result yet
}

// ends records the end of a turn, which has begun these works in the background.
func (p *past) ends(e agent.Event, begun []string) {
	if !p.seen || p.end != nil || p.turn != "" && e.ID != "" && p.turn != e.ID {
		return
	}
	if p.left == nil && len(begun) > 0 {
		p.left = &deferral{}
	}
	if p.left != nil {
		if p.left.ends(e, begun); p.left.goesOn(e) {
			return
		}
	}
	p.end, p.left = &e, nil
}

// remember reads the events from before this courier ran.
func (m *Courier) remember(ctx context.Context) {
	m.past, m.doubts = make(map[string]*past), make(map[string]bool)
	offered := make(map[string]int64)
	for _, o := range m.ledger.list() {
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
	forgot := false
	err := m.o.Events.Read(func(e Event) {
		m.program.hooked = m.program.hooked || e.Start == m.o.Start
		switch e.Event.Event {
		case agent.EventSeen:
			see(e.ID, e.MS, "")
		case agent.EventPrompt:
			m.alone.begins(e.Event)
			if e.Start == m.o.Start && strings.HasPrefix(e.Text, noticeMark) {
				m.preface.startup, m.preface.facts, forgot = false, false, false
			}
			for _, id := range e.IDs {
				see(id, e.MS, e.ID)
			}
			for _, p := range m.past {
				if p.left != nil && p.left.reported(e.Event) {
					p.turn = e.ID
				}
			}
			for id, p := range m.past {
				if p.seen && p.end == nil && strings.HasPrefix(e.Text, noticeMark) && strings.Contains(e.Text, naming(id, "")) {
					p.turn = e.ID
				}
			}
		case agent.EventSessionStart:
			m.program.began = m.program.began || e.Start == m.o.Start
			if e.Start == m.o.Start {
				forgot = m.preface.forgot(e.Text) || forgot
			}
		case agent.EventStop, agent.EventStopFailed:
			ids := m.deferrals.begun(e.Event)
			m.alone.ends(e.Event, ids)
			for _, p := range m.past {
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
	m.left = m.ledger.list()
	if o, ok := (Ledger{Messages: m.left}).limited(); ok {
		m.gate.recall(o)
	}
}

// restore settles what was left, as soon as it is known what the conversation holds.
func (m *Courier) restore(ctx context.Context, now time.Time) {
	if m.restored || ctx.Err() != nil || len(m.left) > 0 && !m.program.knows(now) {
		return
	}
	for len(m.left) > 0 {
		o := m.left[0]
		done, err := m.restoreOne(ctx, o)
		if err != nil { // nothing is known about it: this process may be shutting down
			m.trouble("find "+o.ID, err)
			return
		}
		if done {
			m.answers.settle(0, o)
		}
		m.left = m.left[1:]
	}
	m.restored, m.past = true, nil
}

// cut has what was in progress settled once more: the program was cut off from its
// conversation, which continues.
func (m *Courier) cut() {
	m.program.over()
	m.past = make(map[string]*past)
	for _, o := range m.ledger.interrupt() {
		m.losses[o.ID]++
		m.past[o.ID] = &past{seen: true, turn: o.turn}
		if !m.answers.settling(o) {
			m.left = append(m.left, o)
		}
	}
	if f := m.flight; f != nil { // the conversation knows whether it was accepted
		m.flight = nil
		f.list = slices.DeleteFunc(f.list, func(d *bus.Delivery) bool { return !f.unseen[d.Envelope().ID] })
		for _, d := range f.list {
			m.losses[d.Envelope().ID]++
		}
		m.backlog.pending = append(f.list, m.backlog.pending...)
		for _, l := range f.lost {
			if !slices.ContainsFunc(m.left, func(o Message) bool { return o.ID == l.ID && o.From == l.From }) {
				m.losses[l.ID]++
				m.left = append(m.left, l.Message)
			}
		}
	}
	m.restored = len(m.left) == 0
}

// finished forgets a message that nothing is left to do about.
func (m *Courier) finished(id string) {
	delete(m.losses, id)
	if r, ok := m.o.Runtime.(Settler); ok {
		r.Settled(id)
	}
}

// worn reports whether a message has been cut off as often as allowed.
func (m *Courier) worn(id string) bool {
	return m.traits.Losses > 0 && m.losses[id] >= m.traits.Losses
}

// doubt reports whether a message that is not filed has been seen all the same since
// the mailbox was taken. If it has not, and an earlier server, now dead, gave it to
// this very program, it may still wait in the program's queue: Claude Code restarts a
// dead server when the model calls a tool.
func (m *Courier) doubt(o Message) (seen bool) {
	p := m.past[o.ID]
	seen = p != nil && p.seen
	if seen || o.Start == m.o.Start && m.traits.Queues {
		m.doubts[o.ID] = seen
	}
	return seen
}

// doubtful reports whether something may wait in the program's queue. An idle program's
// queue is empty.
func (m *Courier) doubtful(now time.Time) bool {
	open := false
	for _, seen := range m.doubts {
		open = open || !seen
	}
	if !open || m.program.idleFor(now) < m.traits.Pace.Unseen[0] {
		return open
	}
	maps.DeleteFunc(m.doubts, func(_ string, seen bool) bool { return !seen })
	return false
}

// restoreOne settles one message; it returns true if nothing more is owed about it.
func (m *Courier) restoreOne(ctx context.Context, o Message) (done bool, err error) {
	e, place, ok, err := m.talk.find(ctx, o)
	switch {
	case err != nil:
		return false, err
	case !ok && o.Held != nil && o.Wants:
		a := answer{Message: o, kind: envelope.KindError, text: "it was held (" + o.Held.Fault.Reason.Text() + "), and the message is no longer in the mailbox"}
		return m.answers.give(ctx, a), nil
	case !ok: // removed by hand, or filed unread
		if o.Wants {
			m.o.Log(naming(o.ID, o.From)+" gets no answer: the message is gone or was filed unread", nil)
		}
		return true, nil
	case place != bus.Delivered && !m.doubt(o):
		return false, nil // it is offered again, possibly later
	}
	return m.resume(ctx, o, e, nil)
}

// resume continues with a message that was accepted by a program that has died since;
// it returns true if nothing more is owed about it. d is its delivery if it is not filed:
// if it has expired, and the model never had it, it is filed unread.
func (m *Courier) resume(ctx context.Context, o Message, e envelope.Envelope, d *bus.Delivery) (done bool, err error) {
	var p past
	if known := m.past[o.ID]; known != nil {
		p = *known
	}
	o.turn = p.turn
	if o.Wants {
		if answered, err := m.answers.answered(ctx, o); answered || err != nil {
			return answered, err
		}
	}
	if o.State == StateHeld {
		m.backlog.lost = append(m.backlog.lost, lost{Message: o})
		return false, nil
	}
	if p.left != nil && o.Wants && !m.diedWith(o) {
		m.sight(o.ID)
		m.ledger.took(o.ID, o.turn)
		m.deferrals.list[o.ID] = p.left
		m.program.open = true
		return false, nil
	}
	if p.left != nil {
		end := cutShort(p.left.end)
		p.end, p.turn = &end, end.ID
	}
	end, ok, over, err := m.talk.pastEnd(ctx, o, p)
	if err != nil {
		return false, err
	}
	running := m.program.busy() && !over && !m.diedWith(o)
	if running && !m.traits.Queues { // else it is somebody else's turn
		if running, err = m.talk.holds(ctx, o.ID); err != nil {
			return false, err
		}
	}
	if !ok && m.worn(o.ID) && !running {
		end, ok = agent.Event{Event: agent.EventStopFailed, Text: fmt.Sprintf("it was cut off %d times and is not tried again", m.traits.Losses)}, true
		m.o.Log("give up "+naming(o.ID, o.From), errors.New(end.Text))
	}
	if ok {
		if noAnswer(end) {
			m.backlog.hold(ctx, failed{o, end})
			return false, nil
		}
		if !o.Wants {
			return true, nil
		}
		a := answer{Message: o}
		a.kind, a.text = verdict(end)
		return m.answers.give(ctx, a), nil
	}
	if running { // possibly this turn, which continues
		m.sight(o.ID)
		m.ledger.took(o.ID, o.turn)
		return false, nil
	}
	held, err := m.talk.holds(ctx, o.ID)
	switch {
	case err != nil:
		return false, err
	case !held && d != nil && e.Expired(time.Now()):
		err = d.Expire()
		m.trouble("file expired mail", err)
		return err == nil, err
	case !held:
		m.backlog.lost = append(m.backlog.lost, lost{Message: o, text: envelope.Render(e, time.Now()), envelope: e})
	case o.Wants:
		m.backlog.lost = append(m.backlog.lost, lost{Message: o})
	default:
		return true, nil
	}
	return false, nil
}

// diedWith reports whether the program that took the message has died, so that a turn
// that runs now is another one, such as a person's. A program that does not queue may
// have outlived this process.
func (m *Courier) diedWith(o Message) bool {
	return m.traits.Queues && o.Start != "" && o.Start != m.o.Start
}

// naming names a message in a notice, or with from "" begins its name.
func naming(id string, from agent.ID) string { return id + " from " + string(from) }

// loadLost puts lost messages into a text, as many as fit: those that the conversation
// holds are named, the others offered again. The words around them keep the text from
// looking like a message that arrived twice, which Claude's hook would drop.
func (m *Courier) loadLost(ctx context.Context, f *flight) {
	most := m.backlog.most()
	var named, texts, repeated []string
	size, why := 0, ""
	for _, l := range m.backlog.lost {
		if size += len(l.text); len(f.lost) > 0 && (size > m.traits.BatchBytes || len(f.lost) == most) {
			break
		}
		f.lost = append(f.lost, l)
		if l.text == "" {
			named = append(named, naming(l.ID, l.From))
			continue
		}
		f.unseen[l.ID] = true
		if l.State == StateHeld {
			repeated = append(repeated, l.text)
			why = fmt.Sprintf("%s, try %d", l.Held.Fault.Reason.Text(), l.Held.Turns+1) // no two texts are the same: Claude Code drops the second
			continue
		}
		texts = append(texts, l.text)
	}
	words := "There was an interruption: a restart, a lost connection or a login."
	switch {
	case len(named)+len(texts) == 0:
		words = "The model's vendor ended your turn (" + why + ")."
	case len(named) > 0:
		words = "A restart, a lost connection or a login cut off your turn. Not answered yet: " + strings.Join(named, ", ") +
			". Check what is already done, continue from there, and answer each with reply."
	}
	f.notice = envelope.RenderNotice(words)
	f.text = f.notice
	for i, text := range m.preface.texts(ctx, f) {
		if text = envelope.RenderNotice(text); i == 0 && m.preface.startup {
			f.text = text + "\n" + f.text
		} else { // behind the names of the messages, by which an event's beginning is known
			f.text += "\n" + text
		}
	}
	if len(repeated) > 0 {
		f.text += "\nThese messages are given to you again, because the vendor ended your turn on them (" + why +
			"). Check what is already done, continue from there, and answer each once:\n" + strings.Join(repeated, "\n")
	}
	if len(texts) > 0 {
		f.text += "\nThese messages were sent to you just before the interruption and did not reach you:\n" + strings.Join(texts, "\n")
	}
}
