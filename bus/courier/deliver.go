package courier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"netsky/agent"
	"netsky/bus"
)

// loop runs the courier until ctx ends. A turn that runs then is not over: a shutdown that
// waits for it is acked by the next courier.
func (m *Courier) loop(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		cancels, drops := m.cancels, m.drops
		if len(m.later) >= maxDrops {
			drops = nil
		}
		if m.stopping {
			cancels = nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-m.o.Events.C():
		case b := <-m.batches:
			m.got(b)
		case f := <-m.asks:
			f()
		case c := <-cancels:
			m.interrupt(ctx, c)
		case c := <-drops:
			m.drop(ctx, c)
		case <-timer.C:
		}
		wait := m.step(ctx)
		if m.traits.Leaves && m.box.Obeyed() {
			return bus.ErrShutdown
		}
		timer.Reset(max(wait, time.Millisecond))
	}
}

func (m *Courier) got(b batch) {
	m.asked = false
	step("claimed")
	m.backlog.pending = append(m.backlog.pending, b.list...)
	if b.err == nil {
		return
	}
	m.over = true
	if !errors.Is(b.err, bus.ErrShutdown) && !errors.Is(b.err, context.Canceled) {
		m.o.Log("take mail", b.err)
	}
}

// drop cancels a message: one that is held, or else the turn that took it.
func (m *Courier) drop(ctx context.Context, c cancel) {
	m.readEvents(ctx)
	switch f := m.offers.flight; {
	case !m.history.restored || f != nil && slices.Contains(f.offer().About, c.about):
		m.later = append(m.later, c) // until it is known whether the model has it
	case m.backlog.withdraw(ctx, c), m.deferrals.letGo(ctx, c):
	case !slices.ContainsFunc(m.ledger.seen(), func(o Message) bool { return o.ID == c.about }):
		m.o.Log("cancel from "+string(c.by)+": the agent is not working on "+c.about, nil)
	case !m.stopping:
		m.interrupt(ctx, c)
	}
}

// interrupt ends the running turn, unless that began after the cancel had come. Nothing is
// offered meanwhile, nor before another cancel that came meanwhile: the next turn is not
// meant.
func (m *Courier) interrupt(ctx context.Context, c cancel) {
	m.readEvents(ctx)
	came, now := c.at.UnixMilli(), time.Now().UnixMilli()
	later := func(ms int64) bool { return ms > came && ms <= now }   // else a clock was set back
	none := !m.traits.Queues || !m.program.open && !m.program.busy() // a turn that a text could wait for
	if f := m.offers.flight; f != nil && f.pushed.After(c.at) && none || m.program.open && later(m.program.opened) {
		m.o.Log("cancel from "+string(c.by)+": its turn had ended before", nil)
		return
	}
	m.breakOff(ctx, c.by, func() error { return m.o.Runtime.Interrupt(ctx, c.by) })
}

// breakOff ends the running turn for by; nothing is offered until it has ended.
func (m *Courier) breakOff(ctx context.Context, by agent.ID, end func() error) {
	m.stopping = true
	m.group.Go(func() {
		err := end()
		if err != nil && ctx.Err() == nil {
			m.o.Log("interrupt the turn", err)
		}
		select {
		case m.asks <- func() {
			if err != nil && m.program.busy() { // else it ended by itself
				m.group.Go(func() { m.records.warn(ctx, "", "", "turn not ended for "+string(by)+": "+err.Error(), time.Now()) })
			}
			m.interrupted(ctx)
		}:
		case <-ctx.Done():
		}
	})
}

func (m *Courier) interrupted(ctx context.Context) {
	m.stopping = false
	select {
	case c := <-m.cancels:
		m.interrupt(ctx, c)
	default:
	}
}

// step does what is due and returns when to run again at the latest.
func (m *Courier) step(ctx context.Context) time.Duration {
	m.readEvents(ctx)
	now := time.Now()
	m.look(ctx, now)
	m.history.restore(ctx, now)
	m.abandoned(ctx, now)
	m.answers.retry(ctx, now)
	m.turning(now)
	m.backlog.tellSenders(ctx, now)
	for _, d := range m.backlog.pending {
		m.backlog.lapsed(d)
	}
	later := m.later
	m.later = nil
	for _, c := range later {
		m.drop(ctx, c)
	}
	next := m.program.looks
	if due := m.deliver(ctx, now); !due.IsZero() && due.Before(next) {
		next = due
	}
	return time.Until(next)
}

// turning tells the receiver when a turn begins and ends: a shutdown waits for it, and for
// the answers to what it took.
func (m *Courier) turning(now time.Time) {
	switch running := m.program.open || m.program.busy() || m.offers.handing(now) || m.owing(now); {
	case running && m.turn == nil:
		m.turn = m.box.Turn()
	case !running && m.turn != nil:
		m.turn()
		m.turn = nil
	}
}

// owing reports whether answers are owed to earlier messages that the program can still
// give.
func (m *Courier) owing(now time.Time) bool {
	return len(m.answers.unsent) > 0 || m.program.Takes && !now.Before(m.gate.barred) && (len(m.backlog.lost) > 0 || !m.history.restored && len(m.ledger.list()) > 0)
}

// deliver continues the flight, or starts the next. It returns when to run again; zero:
// when something has happened.
func (m *Courier) deliver(ctx context.Context, now time.Time) (due time.Time) {
	if m.offers.flight != nil {
		return m.pursue(ctx, now)
	}
	if !m.history.restored || m.over || m.stopping || !m.program.Takes {
		return due
	}
	if wait := m.offers.path.token(now); wait > 0 {
		return now.Add(wait)
	}
	if now.Before(m.gate.barred) {
		return m.gate.barred
	}
	switch {
	case len(m.backlog.lost) == 0 && len(m.backlog.pending) == 0:
		if !m.asked && !m.over {
			m.asked = true
			m.wants <- struct{}{}
		}
		return due
	case m.history.doubtful(now):
		return now.Add(m.traits.Pace.Busy)
	case m.offers.path.closed.is && now.Before(m.offers.path.closed.next):
		return m.offers.path.closed.next
	case m.gate.trial && (m.program.open || m.program.busy()): // what tries the account is given nothing more until that is known
		return now.Add(m.traits.Pace.Busy)
	case !m.gate.pass(ctx, now):
		return m.gate.barred
	}
	if m.offers.launch(ctx) {
		m.turning(time.Now())
		m.offers.push(ctx)
	}
	if m.offers.flight == nil && len(m.backlog.lost) == 0 && len(m.backlog.pending) == 0 {
		m.gate.release(ctx) // nothing was left to offer
	}
	if m.offers.path.closed.is && m.offers.flight == nil {
		m.offers.path.nudge(ctx, time.Now(), m.program.State == agent.Idle, len(m.backlog.pending)+m.offers.waiting())
		return m.offers.path.closed.next
	}
	return now.Add(m.traits.Pace.Busy)
}

// maxUnreported is how often a text that only names messages is offered again although a
// turn has run since that no hook has reported.
const maxUnreported = 2

// pursue follows up a text that has been offered.
func (m *Courier) pursue(ctx context.Context, now time.Time) time.Time {
	f := m.offers.flight
	if f.way == byHand {
		if due := f.pushed.Add(m.traits.Pace.Read); now.Before(due) {
			return due
		}
		m.offers.arrived()
		return now
	}
	unseen := m.traits.Pace.Unseen
	wait := unseen[min(f.times, len(unseen))-1]
	idle := m.program.idleFor(now)
	if now.Sub(f.pushed) < wait || idle < wait {
		return now.Add(m.traits.Pace.Busy)
	}
	m.program.stir() // it may have started a turn since
	if m.look(ctx, now); m.program.State != agent.Idle {
		return m.program.looks
	}
	held, err := m.offers.held(ctx, f)
	switch {
	case err != nil:
		return now.Add(wait)
	case held, f.onlyNames() && f.calm && m.program.end.MS >= f.began.UnixMilli():
		m.offers.arrived()
		if m.offers.unreported(ctx, f) && m.program.open {
			m.close(ctx, Event{Event: m.program.end})
		}
	case f.stirred && (f.times > 1 && !m.program.hooked || f.onlyNames() && f.turns >= maxUnreported):
		m.o.Log("deliver mail", errors.New("a turn ran but no hook reported it; assuming the message arrived"))
		m.offers.arrived()
	case now.Before(m.gate.barred), len(f.lost) == 0 && m.backlog.holding(): // what is held goes first
		m.offers.ground()
		return now
	case f.way == byChannel:
		m.o.Log("channel", fmt.Errorf("a notification was not seen within %v; using the other delivery path from now on", wait))
		m.offers.path.channel, f.way = false, byPush
		m.offers.push(ctx)
	case m.offers.path.token(now) > 0:
		return now.Add(m.offers.path.token(now))
	default:
		m.offers.path.tokens--
		m.offers.push(ctx)
	}
	return now.Add(m.traits.Pace.Busy)
}
