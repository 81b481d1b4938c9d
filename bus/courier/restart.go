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
	offered int64 // when, in milliseconds: events of before are of other messages
	seen    bool
	turn    string       // the number of the turn that took it, or was told to continue with it
	here    bool         // that is a turn of this start of the program
	end     *agent.Event // of its turn
	left    *deferral    // its turn left work in the background of which there is no result yet
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

// A history is what is known of the messages that the model was given by an earlier courier,
// or before the program was cut off from its conversation. It belongs to the goroutine of its
// courier.
type history struct {
	common
	backlog   *backlog
	deferrals *deferrals
	sight     func(id string) // is called with each message that the program has all the same

	restored bool             // what was left is settled
	left     []Message        // from the ledger, to be restored
	past     map[string]*past // until then
	doubts   map[string]bool  // for what is to be offered: whether it was seen, or may still wait in the program's queue
	losses   map[string]int   // how often a message's turn was cut off
}

// recall makes room for what events tell of the messages that are still owed.
func (h *history) recall() {
	h.past = make(map[string]*past)
	for _, o := range h.ledger.list() {
		h.past[o.ID] = &past{offered: o.OfferedMS}
	}
}

// see notes an event that shows the message in a turn.
func (h *history) see(id string, e agent.Event) {
	if p := h.past[id]; p != nil && e.MS >= p.offered {
		p.seen = true
		if e.Event == agent.EventPrompt && e.ID != "" && p.end == nil {
			p.turn, p.here = e.ID, e.Start == h.o.Start
		}
	}
}

// prompted notes the event of a turn's beginning.
func (h *history) prompted(e agent.Event) {
	for _, id := range e.IDs {
		h.see(id, e)
	}
	notice := strings.HasPrefix(e.Text, noticeMark)
	for id, p := range h.past {
		if p.left != nil && p.left.reported(e) || p.seen && p.end == nil && notice && strings.Contains(e.Text, naming(id, "")) {
			p.turn, p.here = e.ID, e.Start == h.o.Start
		}
	}
}

// restore settles what was left, as soon as it is known what the conversation holds.
func (h *history) restore(ctx context.Context, now time.Time) {
	if h.restored || ctx.Err() != nil || len(h.left) > 0 && !h.program.knows(now) {
		return
	}
	for len(h.left) > 0 {
		o := h.left[0]
		done, err := h.restoreOne(ctx, o)
		if err != nil { // nothing is known about it: this process may be shutting down
			h.trouble("find "+o.ID, err)
			return
		}
		if done {
			h.answers.settle(0, o)
		}
		h.left = h.left[1:]
	}
	h.restored, h.past = true, nil
}

// cut has what was in progress, with what has been offered, settled once more: the program was
// cut off from its conversation, which continues.
func (h *history) cut(f *flight) {
	h.program.over()
	h.past = make(map[string]*past)
	for _, o := range h.ledger.interrupt() {
		h.losses[o.ID]++
		h.past[o.ID] = &past{seen: true, turn: o.turn}
		if !h.answers.settling(o) {
			h.left = append(h.left, o)
		}
	}
	if f != nil { // the conversation knows whether it was accepted
		f.list = slices.DeleteFunc(f.list, func(d *bus.Delivery) bool { return !f.unseen[d.Envelope().ID] })
		for _, d := range f.list {
			h.losses[d.Envelope().ID]++
		}
		h.backlog.pending = append(f.list, h.backlog.pending...)
		for _, l := range f.lost {
			if !slices.ContainsFunc(h.left, func(o Message) bool { return o.ID == l.ID && o.From == l.From }) {
				h.losses[l.ID]++
				h.left = append(h.left, l.Message)
			}
		}
	}
	h.restored = len(h.left) == 0
}

// finished forgets a message that nothing is left to do about.
func (h *history) finished(id string) {
	delete(h.losses, id)
	if r, ok := h.o.Runtime.(Settler); ok {
		r.Settled(id)
	}
}

// worn reports whether a message has been cut off as often as allowed.
func (h *history) worn(id string) bool {
	return h.traits.Losses > 0 && h.losses[id] >= h.traits.Losses
}

// doubt reports whether a message that is not filed has been seen all the same since
// the mailbox was taken. If it has not, and an earlier server, now dead, gave it to
// this very program, it may still wait in the program's queue: Claude Code restarts a
// dead server when the model calls a tool.
func (h *history) doubt(o Message) (seen bool) {
	p := h.past[o.ID]
	seen = p != nil && p.seen
	if seen || o.Start == h.o.Start && h.traits.Queues {
		h.doubts[o.ID] = seen
	}
	return seen
}

// doubtful reports whether something may wait in the program's queue. An idle program's
// queue is empty.
func (h *history) doubtful(now time.Time) bool {
	open := false
	for _, seen := range h.doubts {
		open = open || !seen
	}
	if !open || h.program.idleFor(now) < h.traits.Pace.Unseen[0] {
		return open
	}
	maps.DeleteFunc(h.doubts, func(_ string, seen bool) bool { return !seen })
	return false
}

// restoreOne settles one message; it returns true if nothing more is owed about it.
func (h *history) restoreOne(ctx context.Context, o Message) (done bool, err error) {
	e, place, ok, err := h.talk.find(ctx, o)
	switch {
	case err != nil:
		return false, err
	case !ok && o.Held != nil && o.Wants:
		a := answer{Message: o, kind: envelope.KindError, text: "it was held (" + o.Held.Fault.Reason.Text() + "), and the message is no longer in the mailbox"}
		return h.answers.give(ctx, a), nil
	case !ok: // removed by hand, or filed unread
		if o.Wants {
			h.o.Log(naming(o.ID, o.From)+" gets no answer: the message is gone or was filed unread", nil)
		}
		return true, nil
	case place != bus.Delivered && !h.doubt(o):
		return false, nil // it is offered again, possibly later
	}
	return h.resume(ctx, o, e, nil)
}

// resume continues with a message that was accepted by a program that has died since;
// it returns true if nothing more is owed about it. d is its delivery if it is not filed:
// if it has expired, and the model never had it, it is filed unread.
func (h *history) resume(ctx context.Context, o Message, e envelope.Envelope, d *bus.Delivery) (done bool, err error) {
	var p past
	if known := h.past[o.ID]; known != nil {
		p = *known
	}
	if o.turn = p.turn; p.here {
		o.Start = h.o.Start
	}
	if o.Wants {
		if answered, err := h.answers.answered(ctx, o); answered || err != nil {
			return answered, err
		}
	}
	if o.State == StateHeld {
		h.backlog.lost = append(h.backlog.lost, lost{Message: o})
		return false, nil
	}
	if p.left != nil && o.Wants && !h.diedWith(o) {
		h.sight(o.ID)
		h.ledger.took(o.ID, o.turn)
		h.deferrals.list[o.ID] = p.left
		h.program.open = true
		return false, nil
	}
	if p.left != nil {
		end := cutShort(p.left.end)
		p.end, p.turn = &end, end.ID
	}
	end, ok, over, err := h.talk.pastEnd(ctx, o, p)
	if err != nil {
		return false, err
	}
	own := d == nil && h.traits.Queues && o.Start == h.o.Start // an earlier server gave it to this very program
	running := h.program.busy() && !over && !h.diedWith(o)
	if running && (own && !p.seen || !h.traits.Queues) { // else it is somebody else's turn
		if running, err = h.talk.holds(ctx, o.ID); err != nil {
			return false, err
		}
	}
	if !ok && h.worn(o.ID) && !running {
		end, ok = agent.Event{Event: agent.EventStopFailed, Text: fmt.Sprintf("it was cut off %d times and is not tried again", h.traits.Losses)}, true
		h.o.Log("give up "+naming(o.ID, o.From), errors.New(end.Text))
	}
	if ok {
		if noAnswer(end) {
			h.backlog.hold(ctx, failed{o, end})
			return false, nil
		}
		if !o.Wants {
			return true, nil
		}
		return h.answers.give(ctx, verdict(o, end)), nil
	}
	if running { // possibly this turn, which continues
		h.sight(o.ID)
		h.ledger.took(o.ID, o.turn)
		return false, nil
	}
	held, err := h.talk.holds(ctx, o.ID)
	switch {
	case err != nil:
		return false, err
	case !held && d != nil && e.Expired(time.Now()):
		err = d.Expire()
		h.trouble("file expired mail", err)
		return err == nil, err
	case !held:
		if own { // it may wait in the queue, or the conversation's file lags behind
			h.doubts[o.ID] = false
		}
		h.backlog.lost = append(h.backlog.lost, lost{Message: o, text: envelope.Render(e, time.Now()), envelope: e})
	case o.Wants:
		h.backlog.lost = append(h.backlog.lost, lost{Message: o})
	default:
		return true, nil
	}
	return false, nil
}

// diedWith reports whether the program that took the message has died, so that a turn
// that runs now is another one, such as a person's. A program that does not queue may
// have outlived this process.
func (h *history) diedWith(o Message) bool {
	return h.traits.Queues && o.Start != "" && o.Start != h.o.Start
}

// naming names a message in a notice, or with from "" begins its name.
func naming(id string, from agent.ID) string { return id + " from " + string(from) }
