package courier

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
)

// A Hold is why a message waits: its turn failed of a fault of the vendor's or of a full
// context, which is no answer. It is offered again when the account's breaker allows it and
// the program takes something.
type Hold struct {
	Fault   agent.Fault `json:"fault"`           // the latest
	SinceMS int64       `json:"since_ms"`        // when it was held first
	LastMS  int64       `json:"last_ms"`         // and last
	Turn    string      `json:"turn,omitempty"`  // the last one that failed
	Turns   int         `json:"turns"`           // that failed
	Tries   int         `json:"tries"`           // of them those that failed of a limit or of the vendor
	Blamed  int         `json:"blamed,omitzero"` // of them those that the message itself may have caused
	Waits   bool        `json:"waits,omitzero"`  // in ledgers of earlier versions: the message is in StateHeld
	Told    bool        `json:"told,omitzero"`   // its sender
}

const (
	// mostTries is how often a message's turn may fail of its account before that is its
	// answer, mostBlamed how often if others were served just before, and no time was
	// stated at which that ends.
	mostTries, mostBlamed = 1000, 3
	// settles is how long a message is held before its sender is told.
	settles = 3 * time.Second
)

// A lost is a message that an earlier courier had offered and whose turn was cut off
// when a process died.
type lost struct {
	Message
	text     string // its rendering, if the conversation never had it, or has to have it again
	envelope envelope.Envelope
}

// A backlog is what is to be offered to the program. It belongs to the goroutine of its
// courier.
type backlog struct {
	common
	records records
	gate    *gate
	preface *preface

	lost    []lost          // from an earlier conversation or held: they go first
	pending []*bus.Delivery // claimed and not offered
}

// A failed is a message, and how its turn failed.
type failed struct {
	Message
	end agent.Event
}

// ofAccount reports whether a turn ended because of a fault of the account, which is no
// answer to what it took.
func ofAccount(e agent.Event) bool {
	return e.Event == agent.EventStopFailed && e.Fault != nil && e.Fault.Reason.OfAccount()
}

// ofContext reports whether a turn ended because the conversation is too long.
func ofContext(e agent.Event) bool {
	return e.Event == agent.EventStopFailed && e.Fault != nil && e.Fault.Reason == agent.ContextFull
}

// noAnswer reports whether a turn failed of what is no answer to the messages that it took: they are held.
func noAnswer(e agent.Event) bool { return ofAccount(e) || ofContext(e) }

// hold keeps messages, whose turns have just failed of the account, until it serves again,
// and those for which the conversation had no room, until the program takes something.
func (s *backlog) hold(ctx context.Context, list ...failed) {
	var done []Message
	now := time.Now().UnixMilli()
	tripped, first, counts := false, false, true
	for i := range list {
		f := &list[i]
		h := Hold{SinceMS: now}
		if f.Held != nil {
			h = *f.Held
		}
		if h.Turn == "" || h.Turn != f.end.ID { // otherwise it was counted before a crash
			h.Fault, h.Turn, h.LastMS = *f.end.Fault, f.end.ID, now
			h.Turns++
			if ofContext(f.end) {
				if s.preface.shortened { // and still there is no room for it
					h.Blamed++
				}
				f.Held, f.State = &h, StateHeld
				continue
			}
			if !tripped {
				tripped = true
				first, counts = s.gate.trip(ctx, *f.end.Fault)
			}
			h.Fault = s.gate.faultOf(h.Fault)
			if counts && h.Fault.Reason != agent.Network && h.Fault.Reason != agent.Login { // these pass, however long they last
				h.Tries++
			}
			if counts && first && h.Fault.UntilMS == 0 && (h.Fault.Reason == agent.RateLimit || h.Fault.Reason == agent.Overloaded || h.Fault.Reason == agent.Billing) {
				h.Blamed++
			}
		}
		f.Held, f.State = &h, StateHeld
	}
	if full := slices.ContainsFunc(list, func(f failed) bool { return ofContext(f.end) }); full {
		s.preface.shortened = false
		s.gate.shut(gateAgain) // by then the program says so itself
	}
	if !tripped {
		s.gate.release(ctx)
	}
	var kept []Message
	for _, f := range list {
		if h := f.Held; h.Tries >= mostTries || h.Blamed >= mostBlamed {
			fault := h.Fault
			fault.Text = fmt.Sprintf("%s (the last of %d tries)", cmp.Or(fault.Text, f.end.Text), h.Turns)
			f.end.Fault = &fault
			if !f.Wants || s.answers.give(ctx, verdict(f.Message, f.end)) {
				done = append(done, f.Message)
			}
			continue
		}
		kept = append(kept, f.Message)
		s.lost = append(s.lost, lost{Message: f.Message})
		s.o.Log(fmt.Sprintf("%s is held: %s", naming(f.ID, f.From), f.Held.Fault), nil)
		s.records.works.Go(func() {
			s.records.warn(ctx, fmt.Sprintf("held-%s-%s-%d", s.o.Agent, f.ID, f.Held.LastMS), f.ID, "held: "+f.Held.Fault.String(), time.UnixMilli(f.Held.LastMS))
		})
	}
	s.trouble("ledger of owed answers", s.ledger.hold(kept))
	step("held")
	s.answers.settle(0, done...)
}

// readHeld renders the held messages that are to be offered next. One that is no longer in
// the mailbox, or has expired, is answered with an error. It returns false if they can't be
// read now.
func (s *backlog) readHeld(ctx context.Context) bool {
	var gone []Message
	late := make(map[string]time.Time)
	for i := range min(len(s.lost), s.most()) {
		l := &s.lost[i]
		if l.State != StateHeld {
			continue
		}
		e, _, ok, err := s.talk.find(ctx, l.Message)
		if s.trouble("find "+l.ID, err); err != nil {
			return false
		}
		if !ok || e.Expired(time.Now()) {
			gone, late[naming(l.ID, l.From)] = append(gone, l.Message), e.Expires
			continue
		}
		l.text, l.envelope = envelope.Render(e, time.Now()), e
	}
	for _, o := range gone {
		why := "the message is no longer in the mailbox"
		if at := late[naming(o.ID, o.From)]; !at.IsZero() {
			why = "it expired meanwhile, at " + agent.Clock(at, time.Now())
		}
		s.giveUp(ctx, answer{Message: o, kind: envelope.KindError, text: "it was held (" + o.Held.Fault.Reason.Text() + "), and " + why})
	}
	return true
}

// giveUp answers a lost message with an error, and forgets it.
func (s *backlog) giveUp(ctx context.Context, a answer) {
	same := func(l lost) bool { return l.ID == a.ID && l.From == a.From }
	s.lost = slices.DeleteFunc(s.lost, same)
	s.o.Log("give up "+naming(a.ID, a.From)+": "+a.text, nil)
	if a.Wants && !s.answers.give(ctx, a) {
		return
	}
	s.answers.settle(0, a.Message)
}

// answer returns the answer to a message that was cancelled.
func (c cancel) answer(o Message, when string) answer {
	o.State = StateCancelled
	return answer{Message: o, kind: envelope.KindError, text: "cancelled by " + string(c.by) + " " + when}
}

// withdrawPending withdraws a message that is claimed and was never offered.
func (s *backlog) withdrawPending(ctx context.Context, c cancel) bool {
	i := slices.IndexFunc(s.pending, func(d *bus.Delivery) bool {
		e := d.Envelope()
		_, offered := s.ledger.offered(e)
		return e.ID == c.about && (e.From == c.by || !c.by.IsClone()) && !offered
	})
	if i < 0 {
		return false
	}
	d := s.pending[i]
	s.pending = without(s.pending, d)
	a := c.answer(messageOf(d.Envelope(), s.o.Start, s.traits.Wants(d.Envelope())), "before it was given to the model")
	if a.Wants {
		s.answers.give(ctx, a)
	}
	s.answers.file(d)
	return true
}

// withdraw drops a held message on behalf of its sender or of an address that may cancel
// anything. It reports whether the message was held.
func (s *backlog) withdraw(ctx context.Context, c cancel) bool {
	i := slices.IndexFunc(s.lost, func(l lost) bool {
		return l.State == StateHeld && l.ID == c.about && (l.From == c.by || !c.by.IsClone())
	})
	if i < 0 {
		return s.withdrawPending(ctx, c)
	}
	s.giveUp(ctx, c.answer(s.lost[i].Message, "while it was held: "+s.lost[i].Held.Fault.String()))
	return true
}

// tellSenders tells agents that their messages are held, once. The owner learns it from
// the state, and from ask.
func (s *backlog) tellSenders(ctx context.Context, now time.Time) {
	for i := range s.lost {
		l := &s.lost[i]
		if l.State != StateHeld || l.Held.Told || l.From.Local() == agent.Owner || now.Sub(time.UnixMilli(l.Held.LastMS)) < settles {
			continue
		}
		h := *l.Held
		h.Told = true
		l.Held = &h
		// A sender on the same account can do nothing about it, and reads it too late.
		if r, err := s.o.Home.LoadReport(l.From); err != nil || h.Fault.Account == "" || r.Fault.Account != h.Fault.Account {
			because := fmt.Sprintf("the model's vendor does not serve %s (%s). It is given to %[1]s again as soon as it does", s.o.Agent, h.Fault)
			if h.Fault.Reason == agent.ContextFull {
				because = fmt.Sprintf("the conversation of %s is full (%s). It is given to %[1]s again when that is compacted, or in some minutes", s.o.Agent, h.Fault)
			}
			text := fmt.Sprintf("Not answered yet: your message %s is held, because %s; nothing is lost. `netsky cancel %[1]s` cancels it.", l.ID, because)
			_, err := s.o.Bus.Send(ctx, envelope.Envelope{
				ID: envelope.AnswerID(s.o.Agent, l.ID, envelope.KindHeld), From: s.o.Agent, To: l.From, Kind: envelope.KindHeld,
				Text: envelope.SafeText(text), InReplyTo: l.ID, Thread: l.Thread, Hops: l.Hops + 1, Via: "code",
			})
			s.trouble("tell "+string(l.From)+" that its message is held", err)
		}
		s.trouble("ledger of owed answers", s.ledger.hold([]Message{l.Message}))
	}
}

// holding reports whether messages are held.
func (s *backlog) holding() bool {
	return slices.ContainsFunc(s.lost, func(l lost) bool { return l.State == StateHeld })
}

// HeldWords is what people read of held messages: "held until 14:30".
func HeldWords(until time.Time) string {
	if until.IsZero() {
		return "held until its model can answer"
	}
	return "held until " + agent.Clock(until, time.Now())
}

// lapsed reports whether a claimed message has expired before it was ever offered. It is
// filed unread then, and its sender is told.
func (s *backlog) lapsed(d *bus.Delivery) bool {
	e := d.Envelope()
	if !e.Expired(time.Now()) {
		return false
	}
	if _, offered := s.ledger.offered(e); offered {
		return false // the model may have it
	}
	err := d.Expire()
	s.trouble("file expired mail", err)
	if err == nil {
		s.pending = without(s.pending, d)
	}
	return true
}

func without(list []*bus.Delivery, gone ...*bus.Delivery) []*bus.Delivery {
	return slices.DeleteFunc(slices.Clone(list), func(d *bus.Delivery) bool { return slices.Contains(gone, d) })
}

// most is how many lost messages are put into one text.
func (s *backlog) most() int {
	if s.traits.Batch > 1 {
		return 2 * s.traits.Batch
	}
	return 1
}
