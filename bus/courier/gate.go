package courier

import (
	"cmp"
	"context"
	"time"

	"netsky/agent"
	"netsky/agent/breaker"
)

// A gate is the circuit breaker of the account that the program uses, as of the last look.
type gate struct {
	account string
	state   breaker.State
	barred  time.Time // nothing is offered before
}

const (
	gateWithin = 5 * time.Second // for a change of the breaker
	gateAgain  = time.Second     // between two looks at a breaker that is not closed
)

// account returns the account that the program uses, and when its login was last changed.
// Programs whose login is not known share one for each runtime.
func (m *Courier) account() (name string, changed time.Time) {
	if s, ok := m.o.Runtime.(Subscriber); ok {
		name, changed = s.Account()
	}
	return cmp.Or(name, m.traits.Name+", unknown login"), changed
}

// faultOf completes a fault that a turn failed of.
func (m *Courier) faultOf(f agent.Fault) agent.Fault {
	if f.Account == "" {
		f.Account, _ = m.account()
	}
	return f
}

// lookAtGate reads the breaker. A login that has changed since the account was tripped, or
// a start of the program since then, lets one agent try: the owner has acted.
func (m *Courier) lookAtGate(ctx context.Context, now time.Time) {
	name, changed := m.account()
	b := breaker.Of(m.o.Home, name)
	s, err := b.Load()
	m.trouble("read the breaker of "+name, err)
	if s.Tripped() && s.RetryMS == 0 {
		if started := m.started(); max(changed.UnixMilli(), started) > s.TripMS {
			within, cancel := context.WithTimeout(ctx, gateWithin)
			_, err := b.Retry(within)
			cancel()
			m.trouble("change the breaker of "+name, err)
			if err == nil {
				s, _ = b.Load()
			}
		}
	}
	m.gate.account, m.gate.state = name, s
	switch {
	case !s.Tripped():
		if err == nil && m.gate.barred.After(now.Add(gateAgain)) {
			return // the breaker could not be changed: this waits all the same
		}
		m.gate.barred = time.Time{}
	case s.RetryMS == 0:
		m.gate.barred = now.Add(gateAgain)
	default:
		m.gate.barred = s.Retry()
	}
}

// started returns when this start of the program was begun, in milliseconds; 0 if that is
// not known.
func (m *Courier) started() int64 {
	la, err := m.o.Home.LoadLaunch(m.o.Agent)
	if err != nil || la.Start != m.o.Start {
		return 0
	}
	return la.StartedMS
}

// pass asks the breaker whether something may be offered now. What gets a pass must be
// offered.
func (m *Courier) pass(ctx context.Context, now time.Time) bool {
	within, cancel := context.WithTimeout(ctx, gateWithin)
	defer cancel()
	name, _ := m.account()
	p, err := breaker.Of(m.o.Home, name).Allow(within, m.o.Agent)
	if ctx.Err() != nil {
		return false
	}
	m.trouble("change the breaker of "+name, err)
	if p.OK && err == nil {
		return true
	}
	m.gate.barred, m.looks = now.Add(gateAgain), time.Time{}
	if again := p.Again; !again.IsZero() && again.Before(m.gate.barred) {
		m.gate.barred = again
	}
	return false
}

// trip records a fault of the account. first reports whether the account served until now.
func (m *Courier) trip(ctx context.Context, f agent.Fault) (first bool) {
	f = m.faultOf(f)
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), gateWithin)
	defer cancel()
	_, first, err := breaker.Of(m.o.Home, f.Account).Trip(within, m.o.Agent, f)
	m.trouble("change the breaker of "+f.Account, err)
	m.looks = time.Time{}
	if err != nil { // or it would be tried again and again
		m.gate.barred = time.Now().Add(gateWithin + gateAgain)
	}
	step("tripped")
	return first
}

// served records that the model answers.
func (m *Courier) served(ctx context.Context) {
	name, _ := m.account()
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), gateWithin)
	defer cancel()
	closed, err := breaker.Of(m.o.Home, name).Answered(within, m.o.Agent, time.UnixMilli(m.opened))
	m.trouble("change the breaker of "+name, err)
	if closed {
		m.o.Log(name+" serves again", nil)
		m.looks = time.Time{}
	}
}

// blocked returns the report of a program that could work but for its account.
func (m *Courier) blocked(r agent.Report, now time.Time) agent.Report {
	s := m.gate.state
	if r.State != agent.Idle || !s.Tripped() {
		return r
	}
	due := s.RetryMS != 0 && !now.Before(s.Retry())
	if due && !m.holding() {
		return r // the next message is the try
	}
	r.State, r.SinceMS, r.Fault = agent.Blocked, s.SinceMS, s.Fault
	r.Fault.Account = s.Account
	switch {
	case due:
		r.Fault.UntilMS = 0
	case s.RetryMS != 0:
		r.Fault.UntilMS = s.RetryMS
	}
	r.Detail, r.Evidence = r.Fault.String(), "a turn of "+string(s.By)+" failed"
	return r
}

// holding reports whether this courier holds messages.
func (m *Courier) holding() bool {
	for _, l := range m.lost {
		if l.again {
			return true
		}
	}
	return false
}
