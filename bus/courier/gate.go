package courier

import (
	"cmp"
	"context"
	"time"

	"netsky/agent"
	"netsky/cost/breaker"
)

// A gate is the circuit breaker of the account that the program uses, as of the last look,
// and that of its model while a limit of that model alone holds this agent back.
type gate struct {
	account string
	scope   string        // the model that is limited, "" if none is
	state   breaker.State // of the one that waits for the owner, or else that bars for longer
	barred  time.Time     // nothing is offered before
	broken  time.Time     // nothing is offered before, as the breaker could not be changed
	trial   bool          // this agent tries the account
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

// names returns the breakers that may bar this agent: the vendor's, and the owner's budgets.
func (m *Courier) names(account string) []string {
	return append(m.vendor(account), breaker.AllBudget, breaker.Budget(m.o.Agent))
}

// vendor returns the breakers of the account.
func (m *Courier) vendor(account string) []string {
	if m.gate.scope == "" {
		return []string{account}
	}
	return []string{breaker.Name(account, m.gate.scope), account} // the one that may bar for days first
}

// leave drops the breakers of an account that the program used before the present one.
func (m *Courier) leave(ctx context.Context, before, now string) {
	if before == now || before == "" {
		return
	}
	within, cancel := context.WithTimeout(ctx, gateWithin)
	defer cancel()
	for _, name := range m.vendor(before) {
		m.trouble("change the breaker of "+name, breaker.Of(m.o.Home, name).Drop(within))
	}
}

// faultOf completes a fault that a turn failed of.
func (m *Courier) faultOf(f agent.Fault) agent.Fault {
	if f.Account == "" {
		name, _ := m.account()
		f.Account = breaker.Name(name, f.Scope)
	}
	return f
}

// recall finds out which model's limit held this agent back when the last courier ended. A
// new start may use another model: it is held back only when one agent may try.
func (m *Courier) recall() {
	o, ok := Ledger{Messages: m.ledger.list()}.limited()
	account, _ := m.account()
	if !ok || o.Held.Fault.Account != breaker.Name(account, o.Held.Fault.Scope) {
		return
	}
	s, err := breaker.Of(m.o.Home, o.Held.Fault.Account).Load()
	m.trouble("read the breaker of "+o.Held.Fault.Account, err)
	if o.State == StateHeld && o.Start == m.o.Start || s.Tripped() && s.Due(time.Now()) {
		m.gate.scope, m.looks = o.Held.Fault.Scope, time.Time{}
	}
}

// lookAtGate reads the breakers.
func (m *Courier) lookAtGate(ctx context.Context, now time.Time) {
	account, changed := m.account()
	m.leave(ctx, m.gate.account, account)
	m.leave(ctx, m.unknown(), account)
	m.gate.account, m.gate.state, m.gate.barred = account, breaker.State{}, m.gate.broken
	for _, name := range m.names(account) {
		s, err := m.readBreaker(ctx, name, now, changed)
		if !s.Tripped() {
			if name == breaker.Name(account, m.gate.scope) && name != account && err == nil && s.SinceMS == 0 { // long closed, or of another login
				m.gate.scope = ""
			}
			continue
		}
		barred := s.Retry()
		if s.RetryMS == 0 {
			barred = now.Add(gateAgain)
		}
		if last := m.gate.state; !last.Tripped() || s.RetryMS == 0 || s.RetryMS > last.RetryMS {
			m.gate.state = s
		}
		if barred.After(m.gate.barred) {
			m.gate.barred = barred
		}
	}
}

// readBreaker reads a breaker. A login that has changed since the account was tripped, or
// a start of the program since then, lets one agent try: the owner has acted.
func (m *Courier) readBreaker(ctx context.Context, name string, now, changed time.Time) (breaker.State, error) {
	b := breaker.Of(m.o.Home, name)
	s, err := b.Load()
	m.trouble("read the breaker of "+name, err)
	if s.Refuses(now) && s.Acted(now, changed, m.started()) { // else the launch need not be read
		within, cancel := context.WithTimeout(ctx, gateWithin)
		_, err := b.Retry(within)
		cancel()
		m.trouble("change the breaker of "+name, err)
		if err == nil {
			s, _ = b.Load()
		}
	}
	return s, err
}

// started returns when this start of the program was begun; zero if that is not known.
func (m *Courier) started() time.Time {
	la, err := m.o.Home.LoadLaunch(m.o.Agent)
	if err != nil || la.Start != m.o.Start {
		return time.Time{}
	}
	return time.UnixMilli(la.StartedMS)
}

// pass asks the breakers whether something may be offered now. What gets a pass must be
// offered.
func (m *Courier) pass(ctx context.Context, now time.Time) bool {
	within, cancel := context.WithTimeout(ctx, gateWithin)
	defer cancel()
	account, _ := m.account()
	for _, name := range m.names(account) {
		p, err := breaker.Of(m.o.Home, name).Allow(within, m.o.Agent)
		if ctx.Err() != nil {
			return false
		}
		m.trouble("change the breaker of "+name, err)
		if p.OK && err == nil {
			continue
		}
		m.free(ctx, name) // what the other one has just given
		m.gate.barred, m.looks = now.Add(gateAgain), time.Time{}
		if again := p.Again; !again.IsZero() && again.Before(m.gate.barred) {
			m.gate.barred = again
		}
		return false
	}
	m.gate.trial = m.gate.state.Tripped()
	return true
}

// trip records a fault of the account. first reports whether the account served until now,
// ok whether it is recorded.
func (m *Courier) trip(ctx context.Context, f agent.Fault) (first, ok bool) {
	f = m.faultOf(f)
	if m.gate.trial {
		m.gate.trial = false
		m.free(ctx, f.Account)
	}
	if f.Scope != "" {
		m.gate.scope = f.Scope
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), gateWithin)
	defer cancel()
	_, first, err := breaker.Of(m.o.Home, f.Account).Trip(within, m.o.Agent, f)
	m.trouble("change the breaker of "+f.Account, err)
	m.looks = time.Time{}
	if err != nil { // or it would be tried again and again
		m.gate.broken = time.Now().Add(gateWithin + gateAgain)
		m.gate.barred = m.gate.broken
	}
	step("tripped")
	return first, err == nil
}

// release lets another agent try the account, if this one has not found out whether it
// serves.
func (m *Courier) release(ctx context.Context) {
	if m.gate.trial {
		m.gate.trial = false
		m.free(ctx, "")
	}
}

// free ends the trials of this agent but that of one breaker.
func (m *Courier) free(ctx context.Context, but string) {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), gateWithin)
	defer cancel()
	for _, name := range m.vendor(m.gate.account) {
		if name != but {
			m.trouble("change the breaker of "+name, breaker.Of(m.o.Home, name).Release(within, m.o.Agent))
		}
	}
}

// served records that the model answers.
func (m *Courier) served(ctx context.Context) {
	if m.gate.scope != "" {
		m.regain(ctx)
	}
	account, _ := m.account()
	if err := m.answers(ctx, account); err == nil && m.gate.scope == "" {
		m.gate.trial = false
	}
}

// answers tells a breaker that the model has answered.
func (m *Courier) answers(ctx context.Context, name string) error {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), gateWithin)
	defer cancel()
	closed, err := breaker.Of(m.o.Home, name).Answered(within, m.o.Agent, time.UnixMilli(m.opened))
	m.trouble("change the breaker of "+name, err)
	if closed {
		m.o.Log(name+" serves again", nil)
		m.looks = time.Time{}
	}
	return err
}

// regain ends what a limit of one model means to this agent, as a model has answered it.
// Before one agent may try, that may be another model, chosen in the program: it says
// nothing to the agents that still use the limited one.
func (m *Courier) regain(ctx context.Context) {
	name := breaker.Name(m.gate.account, m.gate.scope)
	s, err := breaker.Of(m.o.Home, name).Load()
	tries := s.Trial != nil && s.Trial.Agent == m.o.Agent
	switch {
	case err != nil, s.Tripped() && !tries && m.opened <= s.TripMS: // or in a turn from before
		return
	case (tries || s.Due(time.Now())) && m.answers(ctx, name) != nil:
		return
	}
	m.gate.scope, m.looks = "", time.Time{}
}

// blocked returns the report of a program that could work but for its account.
func (m *Courier) blocked(r agent.Report, now time.Time) agent.Report {
	s := m.gate.state
	if r.State != agent.Idle || !s.Tripped() {
		return r
	}
	due := s.Due(now)
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
		if l.State == StateHeld {
			return true
		}
	}
	return false
}
