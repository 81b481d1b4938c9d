package courier

import (
	"context"
	"slices"
	"time"

	"netsky/agent"
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

// deferrals are the messages that wait for work in the background. They belong to the
// goroutine of their courier.
type deferrals struct {
	common

	works []agent.Work         // what was left after the last turn
	list  map[string]*deferral // by the message's ID
}

// begun notes what a turn leaves in the background, and returns the ids of what was not
// there before.
func (s *deferrals) begun(e agent.Event) (ids []string) {
	for _, w := range e.Background {
		if !slices.ContainsFunc(s.works, func(o agent.Work) bool { return o.ID == w.ID }) {
			ids = append(ids, w.ID)
		}
	}
	s.works = e.Background
	return ids
}

// ends notes the end of a turn, which has begun the works with these ids. A message waits only
// for what its own turns have begun, and until one of them has the result: another turn may
// end in between.
func (s *deferrals) ends(ctx context.Context, e agent.Event, ids []string) {
	for _, o := range s.ledger.seen() {
		d, waits := s.list[o.ID]
		switch own := o.turn == "" || o.turn == e.ID; {
		case !own, !waits && (len(ids) == 0 || !o.Wants || s.answers.settling(o) || s.answers.replied(ctx, o)):
		case !waits:
			d = &deferral{}
			d.ends(e, ids)
			s.list[o.ID] = d
		default:
			if d.ends(e, ids); !d.goesOn(e) {
				delete(s.list, o.ID)
			}
		}
	}
}

// serving answers what waits for commands that still run, and says which these are.
func (s *deferrals) serving(ctx context.Context, now time.Time) {
	for _, o := range s.ledger.seen() {
		d, waits := s.list[o.ID]
		if !waits || d.until.IsZero() || now.Before(d.until) {
			continue
		}
		a := verdict(o, d.end)
		a.text += "\n\n[netsky] Still running in the background: " + agent.Works(d.end.Background)
		s.finish(ctx, a)
	}
}

// letGo cancels a message that waits only for work in the background; ok is false if it is
// none. The work goes on.
func (s *deferrals) letGo(ctx context.Context, c cancel) (ok bool) {
	list := s.ledger.seen()
	i := slices.IndexFunc(list, func(o Message) bool { return o.ID == c.about })
	d, waits := s.list[c.about]
	if i < 0 || !waits || s.program.busy() {
		return false
	}
	s.finish(ctx, c.answer(list[i], "after its turn; in the background goes on: "+agent.Works(d.end.Background)))
	return true
}

// finish answers a message that waited for work in the background.
func (s *deferrals) finish(ctx context.Context, a answer) {
	delete(s.list, a.ID)
	if s.answers.give(ctx, a) {
		s.answers.settle(0, a.Message)
	}
	if len(s.list) == 0 && !s.program.busy() {
		s.program.over()
	}
}

// cutShort is the answer to a message whose work in the background ended with its program.
func cutShort(e agent.Event) agent.Event {
	e.Text += "\n\n[netsky] This was before its work was done: what it had left in the background ended with its program (" + agent.Works(e.Background) + ")."
	return e
}
