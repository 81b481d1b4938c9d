package courier

import (
	"context"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
)

// look asks how the program is, if it is time, and reports it if that is news.
func (m *Courier) look(ctx context.Context, now time.Time) {
	if now.Before(m.looks) {
		return
	}
	r := m.o.Runtime.State(ctx)
	if ctx.Err() != nil {
		return // what is said in the end is not to be believed
	}
	r.Start, r.Detail = m.o.Start, envelope.Line(r.Detail, 300)
	if r.State != m.state.State {
		r.SinceMS = time.Now().UnixMilli()
		m.since = now
	} else {
		r.SinceMS = m.state.SinceMS
	}
	switch {
	case m.busy():
		m.looks = now.Add(m.traits.Pace.Busy)
	case r.State == agent.Idle && m.flight == nil && !m.open:
		m.looks = now.Add(m.traits.Pace.Idle)
	default:
		m.looks = now.Add(m.traits.Pace.Busy)
	}
	if f := m.flight; f != nil && r.State == agent.Busy && !m.hooked {
		f.stirred = true
	}
	finished := m.box != nil && m.box.Obeyed()
	if r == m.state && finished == m.finished && m.reported {
		return
	}
	m.state, m.finished = r, finished
	if finished && r.State == agent.Idle {
		// Who asked for it may have died over it: nobody is to think that this one
		// can be given work, and an up is to start it again.
		r.State, r.SinceMS, r.Evidence, r.Detail = agent.Down, time.Now().UnixMilli(), "it acknowledged a shutdown", "has finished as it was asked to"
	}
	err := m.o.Home.SaveReport(m.o.Agent, r.Report)
	m.reported = err == nil
	m.trouble("report the state", err)
}

// busy reports whether a turn runs, as far as the program itself says.
func (m *Courier) busy() bool { return m.state.State == agent.Busy || m.state.State == agent.Waiting }

// idleFor is for how long nothing has gone on.
func (m *Courier) idleFor(now time.Time) time.Duration {
	if m.state.State != agent.Idle {
		return -1
	}
	since := m.since
	if m.heard.After(since) {
		since = m.heard
	}
	return now.Sub(since)
}

// resumeReport continues what an earlier server of the same start reported.
func (m *Courier) resumeReport() {
	r, err := m.o.Home.LoadReport(m.o.Agent)
	if err == nil && r.Start == m.o.Start {
		m.state.Report = r
	}
}
