package courier

import (
	"context"
	"strings"
	"time"

	"netsky/bus"
	"netsky/bus/envelope"
)

// onlyNames reports whether the text brings no message, so that the conversation can't be
// asked whether it holds it.
func (f *flight) onlyNames() bool { return f.notice != "" && len(f.unseen) == 0 }

// unreported settles a flight of which only the hook of the prompt was lost, not that of
// the turn's end. It reports whether that has come.
func (s *offerer) unreported(ctx context.Context, f *flight) (ended bool) {
	since, turn := f.pushed, ""
	if f.calm {
		since = f.began // no other turn can have ended since
	}
	ended = s.program.end.MS >= since.UnixMilli()
	if ended {
		turn = s.program.end.ID
	}
	for _, l := range f.lost {
		if l.text != "" { // the conversation knows the turn even if no hook reported its end
			if e, _, err := s.o.Runtime.Ended(ctx, l.ID, ""); err == nil && e.ID != "" {
				turn = e.ID
			}
		}
	}
	for _, l := range f.lost {
		s.ledger.took(l.ID, turn) // not the one that was cut off
	}
	return ended
}

// held reports whether the conversation holds all messages of the flight.
func (s *offerer) held(ctx context.Context, f *flight) (bool, error) {
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
			e, _, err := s.o.Runtime.Ended(ctx, l.ID, "")
			if err != nil || e.ID == "" || e.ID == l.Held.Turn {
				return false, err
			}
			again++
		case l.text != "": // possibly seen, without an event for the prompt
			list = append(list, l.envelope)
		}
	}
	for _, e := range list {
		if held, err := s.talk.holdsUnseen(ctx, e); !held || err != nil {
			return false, err
		}
	}
	return len(list)+again > 0, nil
}

// sight records that the program has been seen with a message.
func (s *offerer) sight(id string) {
	if _, ok := s.history.doubts[id]; ok {
		s.history.doubts[id] = true
	}
	if s.ledger.sight(id) {
		s.program.open = true // until the turn's end is reported
	}
	f := s.flight
	if f == nil || !f.unseen[id] {
		s.unpend(id)
		return
	}
	delete(f.unseen, id)
	for _, d := range f.list {
		if d.Envelope().ID == id {
			s.answers.file(d)
		}
	}
	if len(f.unseen) == 0 && f.notice == "" {
		s.landed()
	}
}

// unpend files a message that was offered over a connection that broke, and with which
// the program has been seen since.
func (s *offerer) unpend(id string) {
	for _, d := range s.backlog.pending {
		if e := d.Envelope(); e.ID == id {
			if _, offered := s.ledger.offered(e); offered {
				delete(s.history.doubts, id)
				s.backlog.pending = without(s.backlog.pending, d)
				s.answers.file(d)
			}
		}
	}
}

// arrived marks the whole flight as seen.
func (s *offerer) arrived() {
	f := s.flight
	for id := range f.unseen {
		s.sight(id)
	}
	if s.flight == f {
		s.landed()
	}
}

// landed ends the flight.
func (s *offerer) landed() {
	f := s.flight
	if f.prefaced {
		s.preface.told()
	}
	for _, l := range f.lost {
		if s.ledger.sight(l.ID) {
			s.program.open = true
		}
	}
	s.flight = nil
}

// maxResult is the most bytes of text in a tool's result.
const maxResult = 20 << 10

// hand makes a flight of what fits in a tool's result. more reports that there may be
// something in a moment, unless the mailbox is closed for good.
func (s *offerer) hand(ctx context.Context, over bool) (text string, left int, more bool) {
	if s.flight != nil && s.flight.way == byHand {
		s.arrived() // a client that asks again has read the last result
	}
	flying := 0
	if s.flight != nil {
		flying = len(s.flight.list)
	}
	if s.flight != nil || !s.path.closed.is || len(s.backlog.pending) == 0 {
		left = s.waiting() + len(s.backlog.pending) + flying
		return "", left, s.path.closed.is && !over && s.flight == nil && left > 0
	}
	n, size := 0, 0
	for n < len(s.backlog.pending) {
		size += len(s.backlog.pending[n].Rendered()) + 1
		if n > 0 && size > maxResult {
			break
		}
		n++
	}
	f := &flight{unseen: make(map[string]bool)}
	if !s.load(ctx, f, s.backlog.pending[:n]) {
		return "", s.waiting() + len(s.backlog.pending), true
	}
	if err := s.writeDown(f); err != nil {
		s.trouble("ledger of owed answers", err)
		return "", s.waiting() + len(s.backlog.pending), false
	}
	s.backlog.pending = without(s.backlog.pending, f.list...)
	f.way, f.pushed, f.times = byHand, time.Now(), 1
	s.flight = f
	return strings.TrimSpace(f.text), s.waiting() + len(s.backlog.pending), false
}

// waiting counts the files in the inbox.
func (s *offerer) waiting() int {
	n, err := s.o.Bus.Count(s.o.Agent, bus.Inbox)
	if err != nil {
		return 0
	}
	return n
}
