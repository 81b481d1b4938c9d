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
	broken  time.Time // nothing is offered before, as the breaker could not be changed
	trial   bool      // this agent tries the account
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
	return cmp.Or(name, m.unknown()), changed
}

func (m *Courier) unknown() string { return m.traits.Name + ", unknown login" }

// leave drops the breaker of an account that the program used before the present one.
func (m *Courier) leave(ctx context.Context, before, now string) {
	if before == now || before == "" {
		return
	}
	within, cancel := context.WithTimeout(ctx, gateWithin)
	defer cancel()
	m.trouble("change the breaker of "+before, breaker.Of(m.o.Home, before).Drop(within))
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
	if s.Tripped() && s.RetryMS == 0 && s.Acted(now, changed, m.started()) { // else the launch need not be read
		within, cancel := context.WithTimeout(ctx, gateWithin)
		_, err := b.Retry(within)
		cancel()
		m.trouble("change the breaker of "+name, err)
		if err == nil {
			s, _ = b.Load()
		}
	}
	m.leave(ctx, m.gate.account, name)
	m.leave(ctx, m.unknown(), name)
	m.gate.account, m.gate.state = name, s
	switch {
	case !s.Tripped():
		m.gate.barred = m.gate.broken
	case s.RetryMS == 0:
		m.gate.barred = now.Add(gateAgain)
	default:
		m.gate.barred = s.Retry()
	}
}

// started returns when this start of the program was begun; zero if that is not known.
func (m *Courier) started() time.Time {
	la, err := m.o.Home.LoadLaunch(m.o.Agent)
	if err != nil || la.Start != m.o.Start {
		return time.Time{}
	}
	return time.UnixMilli(la.StartedMS)
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
		m.gate.trial = m.gate.state.Tripped()
		return true
	}
	m.gate.barred, m.looks = now.Add(gateAgain), time.Time{}
	if again := p.Again; !again.IsZero() && again.Before(m.gate.barred) {
		m.gate.barred = again
	}
	return false
}

// trip records a fault of the account. first reports whether the account served until now,
// ok whether it is recorded.
func (m *Courier) trip(ctx context.Context, f agent.Fault) (first, ok bool) {
	f = m.faultOf(f)
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), gateWithin)
	defer cancel()
	_, first, err := breaker.Of(m.o.Home, f.Account).Trip(within, m.o.Agent, f)
	m.trouble("change the breaker of "+f.Account, err)
	m.looks = time.Time{}
	if err != nil { // or it would be tried again and again
		m.gate.broken = time.Now().Add(gateWithin + gateAgain)
		m.gate.barred = m.gate.broken
	}
	m.gate.trial = false
	step("tripped")
	return first, err == nil
}

// release lets another agent try the account, if this one has not found out whether it
// serves.
func (m *Courier) release(ctx context.Context) {
	if !m.gate.trial {
		return
	}
	m.gate.trial = false
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), gateWithin)
	defer cancel()
	m.trouble("change the breaker of "+m.gate.account, breaker.Of(m.o.Home, m.gate.account).Release(within, m.o.Agent))
}

// served records that the model answers.
func (m *Courier) served(ctx context.Context) {
	name, _ := m.account()
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), gateWithin)
	defer cancel()
	closed, err := breaker.Of(m.o.Home, name).Answered(within, m.o.Agent, time.UnixMilli(m.opened))
	m.trouble("change the breaker of "+name, err)
	if m.gate.trial = m.gate.trial && err != nil; closed {
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
