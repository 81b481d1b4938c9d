package breaker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"netsky/agent"
	"netsky/cost/breaker"
	"netsky/internal/testworld"
)

// A budget bars until its day is over, and nobody is a trial then; neither a login nor a start of
// the program lifts it.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, h := newBreaker(t)
		b, day := breaker.Of(h, breaker.Budget("agent1")), time.Now().Add(time.Hour)
		for i, want := range []bool{true, false} {
			if changed, err := b.Bar(t.Context(), "agent1", "100 tokens", "key", false, day); err != nil || changed != want {
				t.Fatalf("Bar %d = %v, %v, want %v", i, changed, err, want)
			}
		}
		s, err := b.Load()
		if err != nil || !s.Tripped() || s.Fault.Reason != agent.Budget || s.About != "key" || !s.Fault.Reason.OfAccount() {
			t.Errorf("Load = %+v, %v", s, err)
		}
		if list, err := breaker.List(h); err != nil || len(list) != 1 {
			t.Errorf("List = %+v, %v", list, err)
		}
		allow := func(id agent.ID) bool {
			return testworld.Got(b.Allow(t.Context(), id))(t).OK
		}
		if allow("agent1") {
			t.Error("allowed before the day is over")
		}
		time.Sleep(time.Hour)
		if !allow("agent1") || !allow("agent2") {
			t.Error("not allowed, or one after the other, on the next day")
		}
		if s, err := b.Load(); err != nil || s.SinceMS != 0 {
			t.Errorf("left: %+v, %v", s, err)
		}

		testworld.Got(b.Bar(t.Context(), "agent1", "100 tokens", "task", true, time.Time{}))(t)
		time.Sleep(time.Minute)
		if s, err := b.Load(); err != nil || !s.Refused || s.Acted(time.Now(), time.Now()) {
			t.Errorf("Load = %+v, %v: a start of the program is no answer", s, err)
		}
		for i, want := range []bool{true, false} {
			testworld.Equal(t, testworld.Got(b.Lift(t.Context()))(t), want, "Lift %d", i)
		}
		if !allow("agent1") {
			t.Error("not allowed after Lift")
		}
	})
}
