package courier

import (
	"context"
	"strings"
	"time"

	"netsky/bus"
)

// Waiting returns the waiting messages, rendered, if no other way is open: as many at a
// time as a tool's result can hold. It returns how many messages are left.
func (m *Courier) Waiting(ctx context.Context) (texts string, left int, err error) {
	deadline := time.NewTimer(2 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var more bool
		done := make(chan struct{})
		ask := func() {
			texts, left, more = m.hand(ctx)
			close(done)
		}
		select {
		case m.asks <- ask:
			<-done
			if texts != "" || !more {
				return texts, left, nil
			}
		case <-ctx.Done():
			return "", 0, ctx.Err()
		case <-deadline.C:
			return "", left, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", 0, ctx.Err()
		case <-deadline.C:
			return "", left, nil
		}
	}
}

// maxResult is the most bytes of text in a tool's result.
const maxResult = 20 << 10

// hand makes a flight of what fits in a tool's result. more reports that there may be
// something in a moment.
func (m *Courier) hand(ctx context.Context) (text string, left int, more bool) {
	if m.box == nil {
		return "", m.waiting(), false
	}
	if m.flight != nil && m.flight.way == byHand {
		m.arrived() // a client that asks again has read the last result
	}
	flying := 0
	if m.flight != nil {
		flying = len(m.flight.list)
	}
	if m.flight != nil || !m.path.closed.is || len(m.backlog.pending) == 0 {
		left = m.waiting() + len(m.backlog.pending) + flying
		return "", left, m.path.closed.is && !m.over && m.flight == nil && left > 0
	}
	n, size := 0, 0
	for n < len(m.backlog.pending) {
		size += len(m.backlog.pending[n].Rendered()) + 1
		if n > 0 && size > maxResult {
			break
		}
		n++
	}
	f := &flight{unseen: make(map[string]bool)}
	if !m.load(ctx, f, m.backlog.pending[:n]) {
		return "", m.waiting() + len(m.backlog.pending), true
	}
	if err := m.writeDown(f); err != nil {
		m.trouble("ledger of owed answers", err)
		return "", m.waiting() + len(m.backlog.pending), false
	}
	m.backlog.pending = without(m.backlog.pending, f.list...)
	f.way, f.pushed, f.times = byHand, time.Now(), 1
	m.flight = f
	return strings.TrimSpace(f.text), m.waiting() + len(m.backlog.pending), false
}

// waiting counts the files in the inbox.
func (m *Courier) waiting() int {
	n, err := m.o.Bus.Count(m.o.Agent, bus.Inbox)
	if err != nil {
		return 0
	}
	return n
}
