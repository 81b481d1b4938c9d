package courier

import (
	"context"
	"fmt"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
)

// A flight is the text that has been offered and not seen yet.
type flight struct {
	list     []*bus.Delivery // the messages in it
	lost     []lost          // or messages that an earlier conversation left
	unseen   map[string]bool // by ID, until the program has been seen with it
	text     string
	notice   string    // the beginning of the text, if it is about lost messages
	preface  []string  // the texts of the notices that are included
	prefaced bool      // whatever was due is among them
	way      way       // how it was offered
	began    time.Time // first pushed
	pushed   time.Time // last
	times    int
	calm     bool // the program was idle at first, and no other prompt was reported since
	stirred  bool // the program has been busy since it was pushed
	turns    int  // so often it was pushed again although the program had been busy
}

type way int

const (
	byPush way = iota
	byChannel
	byHand // as the inbox tool's result
)

// launch offers the waiting messages, after storing in the ledger that it does.
func (m *Courier) launch(ctx context.Context) {
	f := &flight{unseen: make(map[string]bool)}
	if len(m.backlog.lost) > 0 {
		if !m.backlog.readHeld(ctx) || len(m.backlog.lost) == 0 {
			return
		}
		m.loadLost(ctx, f)
	} else if !m.load(ctx, f, m.backlog.pending) {
		return
	}
	if err := m.writeDown(f); err != nil {
		m.trouble("ledger of owed answers", err)
		return
	}
	m.trouble("ledger of owed answers", nil)
	step("owed")
	m.backlog.pending, m.backlog.lost = without(m.backlog.pending, f.list...), m.backlog.lost[len(f.lost):]
	m.flight = f
	m.path.tokens--
	m.turning(time.Now())
	m.push(ctx)
}

// load puts messages into a text. It returns false if nothing is to be offered now,
// because the conversation holds them already or can't be asked.
func (m *Courier) load(ctx context.Context, f *flight, list []*bus.Delivery) bool {
	var fresh []*bus.Delivery
	for _, d := range list {
		e := d.Envelope()
		if m.ledger.mistakable(e) || m.backlog.lapsed(d) {
			continue
		}
		o, offered := m.ledger.offered(e)
		held := m.history.doubts[e.ID]
		if !held && offered {
			var err error
			if held, err = m.talk.holdsUnseen(ctx, e); err == nil && !held && o.Wants {
				held, err = m.answers.answered(ctx, o) // so it was held
			}
			if err != nil {
				return false
			}
		}
		late := offered && e.Expired(time.Now())
		if !held && !late && !m.history.worn(e.ID) {
			fresh = append(fresh, d)
			continue
		}
		if !m.history.doubts[e.ID] && (late || o.Start != m.o.Start || !m.traits.Queues) { // accepted by a program, or over a connection, that has died since
			done, err := m.history.resume(ctx, o, e, d)
			if err != nil {
				return false
			}
			m.backlog.pending = without(m.backlog.pending, d)
			if m.answers.file(d); done {
				m.answers.settle(0, o)
			}
			continue
		}
		delete(m.history.doubts, e.ID)
		m.backlog.pending = without(m.backlog.pending, d)
		m.answers.file(d)
		m.sight(e.ID)
	}
	if len(fresh) == 0 {
		return false
	}
	f.list = fresh
	texts := make([]string, 0, len(fresh)+2)
	for _, text := range m.preface.texts(ctx, f) {
		texts = append(texts, envelope.RenderNotice(text))
	}
	for _, d := range fresh {
		f.unseen[d.Envelope().ID] = true
		texts = append(texts, d.Rendered())
	}
	f.text = strings.Join(texts, "\n")
	if m.path.channel {
		f.way = byChannel
	}
	return true
}

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

func (m *Courier) writeDown(f *flight) error {
	list := make([]Message, 0, len(f.list)+len(f.lost))
	for _, l := range f.lost {
		if l.State == StateHeld {
			o := l.Message
			o.Start = m.o.Start
			list = append(list, o)
		}
	}
	for _, d := range f.list {
		o := messageOf(d.Envelope(), m.o.Start, m.traits.Wants(d.Envelope()))
		list = append(list, o)
	}
	return m.ledger.offer(list)
}

// push sends the flight's text, for the first time or again.
func (m *Courier) push(ctx context.Context) {
	f := m.flight
	if f.stirred {
		f.turns++
	}
	f.times++
	f.pushed, f.stirred = time.Now(), false
	if f.times == 1 {
		f.began, f.calm = f.pushed, m.program.State == agent.Idle
	}
	if m.path.offer(ctx, f) {
		m.ground()
	}
}

// offer returns the Offer for the runtime.
func (f *flight) offer() (o Offer) {
	o.Text = f.text
	for _, d := range f.list {
		o.Messages = append(o.Messages, d.Envelope())
	}
	for _, l := range f.lost {
		if l.text != "" {
			o.Messages = append(o.Messages, l.envelope)
		}
		o.About = append(o.About, l.ID)
	}
	for _, d := range f.list {
		o.About = append(o.About, d.Envelope().ID)
	}
	return o
}

// ground takes the flight back: nothing of it was accepted.
func (m *Courier) ground() {
	f := m.flight
	m.flight = nil
	m.path.tokens++
	m.backlog.pending = append(f.list[:len(f.list):len(f.list)], m.backlog.pending...)
	m.backlog.lost = append(f.lost[:len(f.lost):len(f.lost)], m.backlog.lost...)
}
