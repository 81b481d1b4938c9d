package courier_test

import (
	"context"
	"testing"
	"time"

	"netsky/agent"
	"netsky/cost/breaker"
	"netsky/internal/testworld"
)

// TestBudget: with a budget that is used up, an agent is offered nothing, and reports why; other
// agents are, unless the budget is that of all. When it is lifted, what waited is answered. No
// start of the program and no login lifts it.
func TestBudget(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		barred string
		others bool // other agents go on
		until  time.Time
	}{
		{"of the agent", breaker.Budget(me), true, time.Now().Add(time.Hour)},
		{"of its task", breaker.Budget(me), true, time.Time{}},
		{"of all agents", breaker.AllBudget, false, time.Now().Add(time.Hour)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := mustPost(t)
			q := p.beside(agent.Clone(2))
			for _, p := range []*post{p, q} {
				p.program.turn = func(string) (time.Duration, string, error) { return 0, "42", nil }
			}
			b, ctx := breaker.Of(p.home, tt.barred), context.Background()
			if _, err := b.Bar(ctx, me, "100 tokens", "agent:2026-11-24:agent1", false, tt.until); err != nil {
				t.Fatal(err)
			}
			p.program.mustStart(t)
			q.program.mustStart(t)
			p.run()
			q.run()
			p.ask("owner-0")
			testworld.Wait(p, "reported as blocked", func() bool {
				r, err := p.home.LoadReport(p.id)
				return err == nil && r.State == agent.Blocked && r.Fault.Reason == agent.Budget && r.Fault.Account == tt.barred
			})
			if q.ask("owner-1"); tt.others {
				q.mustAnswer("owner-1")
			} else {
				testworld.Wait(q, "reported as blocked", func() bool {
					r, err := q.home.LoadReport(q.id)
					return err == nil && r.State == agent.Blocked && r.Fault.Reason == agent.Budget
				})
			}
			p.man.Look(ctx)
			if list := p.answers(agent.Owner, "owner-0"); len(list) != 0 {
				t.Errorf("answered beyond the budget: %+v", list)
			}
			if lifted, err := b.Lift(ctx); !lifted || err != nil {
				t.Fatalf("Lift = %v, %v", lifted, err)
			}
			p.mustAnswer("owner-0")
			q.mustAnswer("owner-1")
		})
	}
}
