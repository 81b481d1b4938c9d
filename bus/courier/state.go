package courier

import (
	"context"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
)

// look asks for the program's state when that is due, and reports a change.
func (m *Courier) look(ctx context.Context, now time.Time) {
	if now.Before(m.program.looks) {
		return
	}
	r := m.o.Runtime.State(ctx)
	if ctx.Err() != nil {
		return // a program's last reports are unreliable
	}
	r.Start, r.Detail = m.o.Start, envelope.Line(r.Detail, 300)
	m.gate.look(ctx, now)
	if r.State != m.program.State {
		r.SinceMS = time.Now().UnixMilli()
		m.program.since = now
	} else {
		r.SinceMS = m.program.SinceMS
	}
	m.program.looks = now.Add(m.traits.Pace.Busy)
	if r.State == agent.Idle && m.offers.flight == nil && !m.program.open && !m.program.busy() {
		m.program.looks = now.Add(m.traits.Pace.Idle)
	}
	if f := m.offers.flight; f != nil && r.State == agent.Busy {
		f.stirred = true
	}
	if m.gate.state.Tripped() && m.program.looks.After(now.Add(gateAgain)) {
		m.program.looks = now.Add(gateAgain)
	}
	m.program.Condition = r
	report := m.alone.curbed(m.gate.blocked(r.Report, now, m.backlog.holding()))
	if report.State == agent.Idle && len(r.Works) > 0 {
		report.State, report.Detail = agent.Busy, envelope.Line("in the background: "+agent.Works(r.Works), 200)
	}
	if m.box != nil && m.box.Obeyed() && r.State == agent.Idle {
		// The process that requested it may have died: nobody should give this agent work,
		// and an up should start it again.
		report = agent.Report{Start: r.Start, State: agent.Down, SinceMS: m.saved.SinceMS, Evidence: "it acknowledged a shutdown", Detail: "finished as requested"}
		if m.saved.State != agent.Down {
			report.SinceMS = time.Now().UnixMilli()
		}
	}
	if report == m.saved && m.reported {
		return
	}
	m.saved = report
	err := m.o.Home.SaveReport(m.o.Agent, report)
	m.reported = err == nil
	m.trouble("report the state", err)
}

// resumeReport continues what an earlier server of the same start reported.
func (m *Courier) resumeReport() {
	r, err := m.o.Home.LoadReport(m.o.Agent)
	if err == nil && r.Start == m.o.Start {
		m.program.Report, m.program.since = r, time.Now() // it may have changed since
	}
}
