package mcp

import (
	"context"
	"errors"
	"time"

	"netsky/agent"
	"netsky/bus"
)

// loop is the mailman at work, until ctx ends. A turn that runs then is not over: a
// shutdown that waits for it gets its ack from the next server.
func (m *Mailman) loop(ctx context.Context, watch *bus.Watch) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-watch.C:
		case b := <-m.batches:
			m.got(b)
		case f := <-m.asks:
			f()
		case <-m.cancels:
			m.group.Go(func() { m.interrupt(ctx) })
		case <-timer.C:
		}
		timer.Reset(max(m.step(ctx), time.Millisecond))
	}
}

func (m *Mailman) got(b batch) {
	m.asked = false
	m.pending = append(m.pending, b.list...)
	if b.err == nil {
		return
	}
	m.over = true
	if !errors.Is(b.err, bus.ErrShutdown) && !errors.Is(b.err, context.Canceled) {
		m.o.Log("take mail", b.err)
	}
}

func (m *Mailman) interrupt(ctx context.Context) {
	if err := m.m.Runtime.Interrupt(ctx); err != nil && ctx.Err() == nil {
		m.o.Log("interrupt the turn", err)
	}
}

// step does what is due and says when to come back at the latest.
func (m *Mailman) step(ctx context.Context) time.Duration {
	if err := m.tail.Read(func(e agent.Event) { m.event(ctx, e) }); err != nil {
		m.trouble("events", err)
	} else {
		m.trouble("events", nil)
	}
	now := time.Now()
	m.look(ctx, now)
	m.restore(ctx, now)
	m.abandoned(ctx, now)
	m.retry(ctx, now)
	m.turning(now)
	next := m.looks
	if due := m.deliver(ctx, now); !due.IsZero() && due.Before(next) {
		next = due
	}
	if now.Sub(m.rotated) > rotates {
		m.rotated = now
		m.trouble("events", m.o.Home.RotateEvents(m.o.Agent))
	}
	return time.Until(next)
}

// turning tells the receiver when a turn begins and ends: a shutdown waits for it,
// and for the answers to what it took.
func (m *Mailman) turning(now time.Time) {
	if running := m.open || m.busy() || m.handing(now) || m.owing(); running && m.turn == nil {
		m.turn = m.box.Turn()
	} else if !running {
		m.turnOver()
	}
}

// handing reports whether a text may be taken at any moment. One that was not
// taken the first time is not waited for, but a moment each time.
func (m *Mailman) handing(now time.Time) bool {
	f := m.flight
	return f != nil && (f.times <= 1 || now.Sub(f.pushed) < m.pace(abandonedAfter))
}

// owing reports whether answers are owed to what was taken before, which the
// program can still give.
func (m *Mailman) owing() bool {
	return len(m.unsent) > 0 || m.able() && (len(m.lost) > 0 || !m.restored && len(m.ledger.list(false)) > 0)
}

// able reports whether the program can be given something.
func (m *Mailman) able() bool { return m.state.State == agent.Idle || m.busy() }

func (m *Mailman) turnOver() {
	if m.turn != nil {
		m.turn()
		m.turn = nil
	}
}

// deliver brings on what is on its way, or the next. It says when to come back;
// zero: when something has happened.
func (m *Mailman) deliver(ctx context.Context, now time.Time) (due time.Time) {
	if m.flight != nil {
		return m.pursue(ctx, now)
	}
	if !m.restored || m.over {
		return due
	}
	if !m.able() {
		return due
	}
	if wait := m.token(now); wait > 0 {
		return now.Add(wait)
	}
	switch {
	case len(m.lost) == 0 && len(m.pending) == 0:
		if !m.asked && !m.over {
			m.asked = true
			m.wants <- struct{}{}
		}
		return due
	case m.doubtful(now):
		return now.Add(m.pace(lookBusy))
	case m.closed.is && now.Before(m.closed.next):
		return m.closed.next
	}
	m.launch(ctx)
	if m.closed.is && m.flight == nil {
		m.point(ctx, time.Now())
		return m.closed.next
	}
	return now.Add(m.pace(lookBusy))
}

// token counts what may be pushed in a row; it says how long to wait.
func (m *Mailman) token(now time.Time) time.Duration {
	every := m.pace(tokenEvery)
	m.tokens = min(tokens, m.tokens+float64(now.Sub(m.filled))/float64(every))
	m.filled = now
	if m.tokens >= 1 {
		return 0
	}
	return time.Duration((1 - m.tokens) * float64(every))
}
