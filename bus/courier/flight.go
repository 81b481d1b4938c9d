package courier

import (
	"context"
	"fmt"
	"slices"
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

// An offerer gives the program what is to be offered, one text at a time. It belongs to the
// goroutine of its courier.
type offerer struct {
	common
	backlog *backlog
	history *history
	preface *preface
	path    path

	flight *flight // nil: none
}

// launch makes a flight of messages, and stores in the ledger that they are offered; push
// does that. It reports whether there is one.
func (s *offerer) launch(ctx context.Context) bool {
	f := &flight{unseen: make(map[string]bool)}
	if len(s.backlog.lost) > 0 {
		if !s.backlog.readHeld(ctx) || !s.recheck(ctx) || len(s.backlog.lost) == 0 {
			return false
		}
		s.loadLost(ctx, f)
	} else if !s.load(ctx, f, s.backlog.pending) {
		return false
	}
	err := s.writeDown(f)
	if s.trouble("ledger of owed answers", err); err != nil {
		return false
	}
	step("owed")
	s.backlog.pending, s.backlog.lost = without(s.backlog.pending, f.list...), s.backlog.lost[len(f.lost):]
	s.flight = f
	s.path.tokens--
	return true
}

// load puts messages into a text. It returns false if nothing is to be offered now,
// because the conversation holds them already or can't be asked.
func (s *offerer) load(ctx context.Context, f *flight, list []*bus.Delivery) bool {
	var fresh []*bus.Delivery
	for _, d := range list {
		e := d.Envelope()
		if s.ledger.mistakable(e) || s.backlog.lapsed(d) {
			continue
		}
		o, offered := s.ledger.offered(e)
		held := s.history.doubts[e.ID]
		if !held && offered {
			var err error
			if held, err = s.talk.holdsUnseen(ctx, e); err == nil && !held && o.Wants {
				held, err = s.answers.answered(ctx, o) // so it was held
			}
			if err != nil {
				return false
			}
		}
		late := offered && e.Expired(time.Now())
		if !held && !late && !s.history.worn(e.ID) {
			fresh = append(fresh, d)
			continue
		}
		if !s.history.doubts[e.ID] && (late || o.Start != s.o.Start || !s.traits.Queues) { // accepted by a program, or over a connection, that has died since
			done, err := s.history.resume(ctx, o, e, d)
			if err != nil {
				return false
			}
			s.backlog.pending = without(s.backlog.pending, d)
			if s.answers.file(d); done {
				s.answers.settle(0, o)
			}
			continue
		}
		delete(s.history.doubts, e.ID)
		s.backlog.pending = without(s.backlog.pending, d)
		s.answers.file(d)
		s.sight(e.ID)
	}
	if len(fresh) == 0 {
		return false
	}
	f.list = fresh
	texts := make([]string, 0, len(fresh)+2)
	for _, text := range s.preface.texts(ctx, f) {
		texts = append(texts, envelope.RenderNotice(text))
	}
	for _, d := range fresh {
		f.unseen[d.Envelope().ID] = true
		texts = append(texts, d.Rendered())
	}
	f.text = strings.Join(texts, "\n")
	if s.path.channel {
		f.way = byChannel
	}
	return true
}

// recheck takes out of what was lost what an earlier courier gave to this very program, if the
// program has it all the same. It returns false if that can't be known now.
func (s *offerer) recheck(ctx context.Context) bool {
	for _, l := range slices.Clone(s.backlog.lost) {
		if l.text == "" || l.State == StateHeld || l.Start != s.o.Start || !s.traits.Queues {
			continue
		}
		held := s.history.doubts[l.ID]
		if !held {
			var err error
			if held, err = s.talk.holdsUnseen(ctx, l.envelope); err != nil {
				return false
			}
		}
		if _, owed := s.ledger.offered(l.envelope); held || !owed {
			delete(s.history.doubts, l.ID)
			s.backlog.lost = slices.DeleteFunc(s.backlog.lost, func(o lost) bool { return o.ID == l.ID && o.From == l.From })
			s.sight(l.ID)
		}
	}
	return true
}

// loadLost puts lost messages into a text, as many as fit: those that the conversation
// holds are named, the others offered again. The words around them keep the text from
// looking like a message that arrived twice, which Claude's hook would drop.
func (s *offerer) loadLost(ctx context.Context, f *flight) {
	most := s.backlog.most()
	var named, texts, repeated []string
	size, why := 0, ""
	for _, l := range s.backlog.lost {
		if size += len(l.text); len(f.lost) > 0 && (size > s.traits.BatchBytes || len(f.lost) == most) {
			break
		}
		if l.text != "" {
			l.Start = s.o.Start
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
	for i, text := range s.preface.texts(ctx, f) {
		if text = envelope.RenderNotice(text); i == 0 && s.preface.startup {
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

func (s *offerer) writeDown(f *flight) error {
	list := make([]Message, 0, len(f.list)+len(f.lost))
	for _, l := range f.lost {
		if l.text != "" {
			list = append(list, l.Message)
		}
	}
	for _, d := range f.list {
		o := messageOf(d.Envelope(), s.o.Start, s.traits.Wants(d.Envelope()))
		list = append(list, o)
	}
	return s.ledger.offer(list)
}

// push sends the flight's text, for the first time or again.
func (s *offerer) push(ctx context.Context) {
	f := s.flight
	if f.stirred {
		f.turns++
	}
	f.times++
	f.pushed, f.stirred = time.Now(), false
	if f.times == 1 {
		f.began, f.calm = f.pushed, s.program.State == agent.Idle
	}
	if s.path.offer(ctx, f) {
		s.ground()
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
func (s *offerer) ground() {
	f := s.flight
	s.flight = nil
	s.path.tokens++
	s.backlog.pending = append(f.list[:len(f.list):len(f.list)], s.backlog.pending...)
	s.backlog.lost = append(f.lost[:len(f.lost):len(f.lost)], s.backlog.lost...)
}

// handing reports whether an offered text may be accepted at any moment. A first failure
// is waited for only briefly each time.
func (s *offerer) handing(now time.Time) bool {
	f := s.flight
	return f != nil && (f.times <= 1 || now.Sub(f.pushed) < s.traits.Pace.Told)
}
