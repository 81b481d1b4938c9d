package courier

import (
	"time"

	"netsky/agent"
)

// A program is what is known of the program: its state as of the last look, and its turn as
// of the last event. It belongs to the goroutine of its courier.
type program struct {
	Condition
	pace   Pace
	since  time.Time // when the state was first seen
	looks  time.Time // when to look at it next
	heard  time.Time // the last event of this program
	hooked bool      // there was one, so events work
	began  bool      // its session has begun

	open   bool        // a turn is running, according to the events
	opened int64       // when it began, in milliseconds
	turnOf string      // its first message
	end    agent.Event // of the last turn
}

// stir makes a look due.
func (p *program) stir() { p.looks = time.Time{} }

// busy reports whether a turn runs, according to the program.
func (p *program) busy() bool { return p.State == agent.Busy || p.State == agent.Waiting }

// idleFor returns for how long nothing has happened.
func (p *program) idleFor(now time.Time) time.Duration {
	if p.State != agent.Idle {
		return -1
	}
	since := p.since
	if p.heard.After(since) {
		since = p.heard
	}
	return now.Sub(since)
}

// knows reports whether Holds can be asked.
func (p *program) knows(now time.Time) bool {
	switch p.State {
	case agent.Busy, agent.Waiting:
		return true
	case agent.Idle:
		return p.began || p.idleFor(now) >= p.pace.Begins
	}
	return p.began && p.Takes
}

// begins notes when the running turn was opened.
func (p *program) begins(ms int64) { p.open, p.opened = true, ms }

// about identifies the turn by its first message.
func (p *program) about(id string) {
	if p.turnOf == "" {
		p.turnOf = id
	}
}

// over notes that no turn is running.
func (p *program) over() { p.open, p.turnOf = false, "" }
