package courier

import (
	"cmp"
	"context"
	"time"

	"netsky/agent"
	"netsky/cost/breaker"
)

// A gate is the circuit breaker of the account that the program uses, as of the last look,
// and that of its model while a limit of that model alone holds this agent back. It belongs
// to the goroutine of its courier.
type gate struct {
	o       *Options
	runtime string                       // the name of the program's kind
	trouble func(what string, err error) // logs what fails, once
	stir    func()                       // has the courier look at the state again

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

// login returns the account that the program uses, and when its login was last changed.
// Programs whose login is not known share one for each runtime.
func (g *gate) login() (name string, changed time.Time) {
	if s, ok := g.o.Runtime.(Subscriber); ok {
		name, changed = s.Account()
	}
	return cmp.Or(name, g.unknown()), changed
}

func (g *gate) unknown() string { return g.runtime + ", unknown login" }

// names returns the breakers that may bar this agent: the vendor's, and the owner's budgets.
func (g *gate) names(account string) []string {
	return append(g.vendor(account), breaker.AllBudget, breaker.Budget(g.o.Agent))
}

// vendor returns the breakers of the account.
func (g *gate) vendor(account string) []string {
	if g.scope == "" {
		return []string{account}
	}
	return []string{breaker.Name(account, g.scope), account} // the one that may bar for days first
}

// leave drops the breakers of an account that the program used before the present one.
func (g *gate) leave(ctx context.Context, before, now string) {
	if before == now || before == "" {
		return
	}
	within, cancel := context.WithTimeout(ctx, gateWithin)
	defer cancel()
	for _, name := range g.vendor(before) {
		g.trouble("change the breaker of "+name, breaker.Of(g.o.Home, name).Drop(within))
	}
}

// faultOf completes a fault that a turn failed of.
func (g *gate) faultOf(f agent.Fault) agent.Fault {
	if f.Account == "" {
		name, _ := g.login()
		f.Account = breaker.Name(name, f.Scope)
	}
	return f
}

// recall notes which model's limit held this agent back when the last courier ended, by the
// message that was the last to be held for one. A new start may use another model: it is held
// back only when one agent may try.
func (g *gate) recall(o Message) {
	account, _ := g.login()
	if o.Held.Fault.Account != breaker.Name(account, o.Held.Fault.Scope) {
		return
	}
	s, err := breaker.Of(g.o.Home, o.Held.Fault.Account).Load()
	g.trouble("read the breaker of "+o.Held.Fault.Account, err)
	if o.State == StateHeld && o.Start == g.o.Start || s.Tripped() && s.Due(time.Now()) {
		g.scope = o.Held.Fault.Scope
		g.stir()
	}
}

// look reads the breakers.
func (g *gate) look(ctx context.Context, now time.Time) {
	account, changed := g.login()
	g.leave(ctx, g.account, account)
	g.leave(ctx, g.unknown(), account)
	g.account, g.state, g.barred = account, breaker.State{}, g.broken
	for _, name := range g.names(account) {
		s, err := g.readBreaker(ctx, name, now, changed)
		if !s.Tripped() {
			if name == breaker.Name(account, g.scope) && name != account && err == nil && s.SinceMS == 0 { // long closed, or of another login
				g.scope = ""
			}
			continue
		}
		barred := s.Retry()
		if s.RetryMS == 0 {
			barred = now.Add(gateAgain)
		}
		if last := g.state; !last.Tripped() || s.RetryMS == 0 || s.RetryMS > last.RetryMS {
			g.state = s
		}
		if barred.After(g.barred) {
			g.barred = barred
		}
	}
}

// readBreaker reads a breaker. A login that has changed since the account was tripped, or
// a start of the program since then, lets one agent try: the owner has acted.
func (g *gate) readBreaker(ctx context.Context, name string, now, changed time.Time) (breaker.State, error) {
	b := breaker.Of(g.o.Home, name)
	s, err := b.Load()
	g.trouble("read the breaker of "+name, err)
	if s.Refuses(now) && s.Acted(now, changed, g.started()) { // else the launch need not be read
		within, cancel := context.WithTimeout(ctx, gateWithin)
		_, err := b.Retry(within)
		cancel()
		g.trouble("change the breaker of "+name, err)
		if err == nil {
			s, _ = b.Load()
		}
	}
	return s, err
}

// started returns when this start of the program was begun; zero if that is not known.
func (g *gate) started() time.Time {
	la, err := g.o.Home.LoadLaunch(g.o.Agent)
	if err != nil || la.Start != g.o.Start {
		return time.Time{}
	}
	return time.UnixMilli(la.StartedMS)
}

// pass asks the breakers whether something may be offered now. What gets a pass must be
// offered.
func (g *gate) pass(ctx context.Context, now time.Time) bool {
	within, cancel := context.WithTimeout(ctx, gateWithin)
	defer cancel()
	account, _ := g.login()
	for _, name := range g.names(account) {
		p, err := breaker.Of(g.o.Home, name).Allow(within, g.o.Agent)
		if ctx.Err() != nil {
			return false
		}
		g.trouble("change the breaker of "+name, err)
		if p.OK && err == nil {
			continue
		}
		g.free(ctx, name) // what the other one has just given
		g.barred = now.Add(gateAgain)
		g.stir()
		if again := p.Again; !again.IsZero() && again.Before(g.barred) {
			g.barred = again
		}
		return false
	}
	g.trial = g.state.Tripped()
	return true
}

// trip records a fault of the account. first reports whether the account served until now,
// ok whether it is recorded.
func (g *gate) trip(ctx context.Context, f agent.Fault) (first, ok bool) {
	f = g.faultOf(f)
	if g.trial {
		g.trial = false
		g.free(ctx, f.Account)
	}
	if f.Scope != "" {
		g.scope = f.Scope
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), gateWithin)
	defer cancel()
	_, first, err := breaker.Of(g.o.Home, f.Account).Trip(within, g.o.Agent, f)
	g.trouble("change the breaker of "+f.Account, err)
	g.stir()
	if err != nil { // or it would be tried again and again
		g.shut(gateWithin + gateAgain)
	}
	step("tripped")
	return first, err == nil
}

// shut lets nothing be offered for some time, whatever the breakers say.
func (g *gate) shut(d time.Duration) {
	g.broken = time.Now().Add(d)
	g.barred = g.broken
	g.stir()
}

// release lets another agent try the account, if this one has not found out whether it
// serves.
func (g *gate) release(ctx context.Context) {
	if g.trial {
		g.trial = false
		g.free(ctx, "")
	}
}

// free ends the trials of this agent but that of one breaker.
func (g *gate) free(ctx context.Context, but string) {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), gateWithin)
	defer cancel()
	for _, name := range g.vendor(g.account) {
		if name != but {
			g.trouble("change the breaker of "+name, breaker.Of(g.o.Home, name).Release(within, g.o.Agent))
		}
	}
}

// served records that the model answers in a turn that was opened then, in milliseconds.
func (g *gate) served(ctx context.Context, opened int64) {
	if g.scope != "" {
		g.regain(ctx, opened)
	}
	account, _ := g.login()
	if err := g.answers(ctx, account, opened); err == nil && g.scope == "" {
		g.trial = false
	}
}

// answers tells a breaker that the model has answered.
func (g *gate) answers(ctx context.Context, name string, opened int64) error {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), gateWithin)
	defer cancel()
	closed, err := breaker.Of(g.o.Home, name).Answered(within, g.o.Agent, time.UnixMilli(opened))
	g.trouble("change the breaker of "+name, err)
	if closed {
		g.o.Log(name+" serves again", nil)
		g.stir()
	}
	return err
}

// regain ends what a limit of one model means to this agent, as a model has answered it.
// Before one agent may try, that may be another model, chosen in the program: it says
// nothing to the agents that still use the limited one.
func (g *gate) regain(ctx context.Context, opened int64) {
	name := breaker.Name(g.account, g.scope)
	s, err := breaker.Of(g.o.Home, name).Load()
	tries := s.Trial != nil && s.Trial.Agent == g.o.Agent
	switch {
	case err != nil, s.Tripped() && !tries && opened <= s.TripMS: // or in a turn from before
		return
	case (tries || s.Due(time.Now())) && g.answers(ctx, name, opened) != nil:
		return
	}
	g.scope = ""
	g.stir()
}

// blocked returns the report of a program that could work but for its account, and that may
// be holding messages.
func (g *gate) blocked(r agent.Report, now time.Time, holding bool) agent.Report {
	s := g.state
	if r.State != agent.Idle || !s.Tripped() {
		return r
	}
	due := s.Due(now)
	if due && !holding {
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
