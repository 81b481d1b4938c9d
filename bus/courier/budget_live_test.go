//go:build live

package courier_test

import (
	"testing"
	"time"

	"netsky/agent"
	"netsky/cost/breaker"
	"netsky/internal/testworld"
)

// A day's budget is lifted by the end of the day, without anybody who accounts for it.
func TestBudgetDay(t *testing.T) {
	t.Parallel()
	p := mustPost(t)
	p.program.turn = func(string) (time.Duration, string, error) { return 0, "42", nil }
	if _, err := breaker.Of(p.home, breaker.Budget(me)).Bar(t.Context(), me, "100 tokens", "x", false, time.Now().Add(2*time.Second)); err != nil {
		t.Fatal(err)
	}
	p.program.mustStart(t)
	p.run()
	p.ask("owner-0")
	testworld.Wait(p, "reported as blocked", func() bool {
		r, err := p.home.LoadReport(p.id)
		return err == nil && r.State == agent.Blocked
	})
	p.mustAnswer("owner-0")
	if p.breaker(breaker.Budget(me)).Tripped() {
		t.Error("still barred")
	}
}
