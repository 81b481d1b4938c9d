package courier_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/cost/breaker"
	"netsky/internal/testworld"
)

// opus is the breaker of a model on the account.
var opus = breaker.Name(account, "opus")

// ofOpus returns a used up quota of one model.
func ofOpus() error {
	f := usage(time.Hour)
	f.Scope = "opus"
	return f
}

// beside returns another agent of the same home.
func (p *post) beside(id agent.ID) *post {
	q := &post{TB: p.TB, id: id, home: p.home, bus: p.bus}
	q.open()
	return q
}

func (p *post) breaker(name string) breaker.State {
	p.Helper()
	s, err := breaker.Of(p.home, name).Load()
	if err != nil {
		p.Fatal(err)
	}
	return s
}

// retryOf lets an account or a model be tried now.
func (p *post) retryOf(name string) {
	p.Helper()
	if _, err := breaker.Of(p.home, name).Retry(context.Background()); err != nil {
		p.Fatal(err)
	}
}

func (p *post) ask(id string) {
	p.Helper()
	p.drop(envelope.Envelope{ID: id, From: agent.Owner, To: p.id, Text: "?"})
}

func (p *post) mustAnswer(id string) {
	p.Helper()
	testworld.Wait(p, "an answer to "+id, func() bool { return len(p.answers(agent.Owner, id)) > 0 })
	if list := p.answers(agent.Owner, id); len(list) != 1 || list[0].Kind != envelope.KindReply || list[0].Text != "42" {
		p.Errorf("answers to %s: %+v", id, list)
	}
}

func (p *post) mustBlock(scope string) {
	p.Helper()
	testworld.Wait(p, "reported as blocked", func() bool {
		r, err := p.home.LoadReport(p.id)
		return err == nil && r.State == agent.Blocked && r.Fault.Scope == scope && r.Fault.Account == breaker.Name(account, scope)
	})
}

func (p *post) mustTurns(turns *atomic.Int32, want int32) {
	p.Helper()
	p.man.Look(p.Context())
	if n := turns.Load(); n != want {
		p.Errorf("%s: %d turns, want %d", p.id, n, want)
	}
}

// TestScope: a limit of one model holds back the agent that has run into it, and nobody
// else; after the reset it is given its message once more. It survives a kill of the courier.
func TestScope(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		kill bool
	}{{"runs on", false}, {"killed", true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := mustPost(t)
			turns := p.program.fails(1, ofOpus)
			p.program.mustStart(t)
			if tt.kill {
				socket, gone := p.mustDoor()
				kill := p.mustCourier(socket)
				p.ask("owner-0")
				p.mustHold("owner-0")
				kill()
				testworld.Wait(p, "what the dead courier had sent", gone)
				p.run()
			} else {
				p.run()
				p.ask("owner-0")
			}
			if h := p.mustHold("owner-0"); h.Fault.Scope != "opus" || h.Fault.Account != opus {
				t.Errorf("held: %+v", h)
			}
			p.mustBlock("opus")
			if r, err := p.home.LoadReport(me); err != nil || !strings.HasPrefix(r.Detail, "usage limit of opus until ") {
				t.Errorf("report %+v, %v", r, err)
			}
			p.ask("owner-1")
			q := p.beside(agent.Clone(2))
			others := q.program.fails(0, nil)
			q.program.mustStart(t)
			q.run()
			for _, id := range []string{"owner-2", "owner-3"} {
				q.ask(id)
				q.mustAnswer(id)
			}
			p.mustTurns(turns, 1)
			q.mustTurns(others, 2)
			if p.breaker(account).Tripped() || !p.breaker(opus).Tripped() {
				t.Errorf("the account: %+v, its model: %+v", p.breaker(account), p.breaker(opus))
			}
			p.retryOf(opus)
			p.mustAnswer("owner-0")
			p.mustAnswer("owner-1")
			p.mustTurns(turns, 3)
			if p.breaker(opus).Tripped() {
				t.Error("the model is still taken for exhausted")
			}
		})
	}
}

// TestScopeShared: agents of the same model find out by one turn each, and after the reset
// one of them tries first.
func TestScopeShared(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	q := p.beside(agent.Clone(2))
	var turns [2]*atomic.Int32
	for i, x := range []*post{p, q} {
		turns[i] = x.program.fails(1, ofOpus)
		x.program.mustStart(t)
		x.run()
		x.ask("owner-" + string(x.id))
		x.mustBlock("opus")
	}
	p.retryOf(opus)
	for i, x := range []*post{p, q} {
		x.mustAnswer("owner-" + string(x.id))
		x.mustTurns(turns[i], 2)
	}
}

// TestScopeAndAccount: a limit of a model and one of its account, one after the other: each
// bars for itself, and what the one gave is not kept from others.
func TestScopeAndAccount(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		faults []func() error
		scopes []string
	}{
		{"the model's first", []func() error{ofOpus, func() error { return usage(time.Hour) }}, []string{"opus", ""}},
		{"the account's first", []func() error{func() error { return usage(time.Hour) }, ofOpus}, []string{"", "opus"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := mustPost(t)
			var turns atomic.Int32
			p.program.turn = func(string) (time.Duration, string, error) {
				if n := int(turns.Add(1)); n <= len(tt.faults) {
					return 0, "", tt.faults[n-1]()
				}
				return 0, "42", nil
			}
			p.program.mustStart(t)
			p.run()
			p.ask("owner-0")
			for i, scope := range tt.scopes {
				p.mustBlock(scope)
				p.mustTurns(&turns, int32(i+1))
				for _, other := range []string{"opus", ""} {
					if s := p.breaker(breaker.Name(account, other)); s.Trial != nil {
						t.Errorf("the trial of %q is left: %+v", other, s)
					}
				}
				p.retryOf(breaker.Name(account, scope))
			}
			p.mustAnswer("owner-0")
			p.mustTurns(&turns, 3)
			for _, name := range []string{opus, account} {
				if s := p.breaker(name); s.Tripped() {
					t.Errorf("%s is still barred: %+v", name, s)
				}
			}
		})
	}
}

// TestScopeLeft: an agent that no longer uses the limited model is held back no longer;
// those that do are.
func TestScopeLeft(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(p *post, stop func())
		stays  bool // the model's breaker
	}{
		{"another model, chosen in the program", func(p *post, _ func()) {
			p.program.set(func() { p.program.queue = append(p.program.queue, "typed by hand") })
		}, true},
		{"a new start", func(p *post, stop func()) {
			stop()
			p.program.settle(p)
			p.options.Start = p.program.startID()
			p.run()
		}, true},
		{"another login", func(p *post, _ func()) { p.program.set(func() { p.program.account = "vendor me@example.org" }) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := mustPost(t)
			p.program.fails(1, ofOpus)
			p.program.mustStart(t)
			stop := p.run()
			p.ask("owner-0")
			p.mustHold("owner-0")
			p.mustBlock("opus")
			if scope := courier.ReadLedger(p.home, me).Limited(p.program.startID()); scope != "opus" {
				t.Errorf("Limited = %q", scope)
			}
			tt.change(p, stop)
			p.mustAnswer("owner-0")
			testworld.Wait(p, "idle", func() bool {
				r, err := p.home.LoadReport(me)
				return err == nil && r.State == agent.Idle && r.Fault == agent.Fault{}
			})
			if s := p.breaker(opus); s.Tripped() != tt.stays {
				t.Errorf("the breaker of the model is %+v", s)
			}
			if scope := courier.ReadLedger(p.home, me).Limited(p.program.startID()); scope != "" {
				t.Errorf("Limited = %q after an answer", scope)
			}
		})
	}
}
