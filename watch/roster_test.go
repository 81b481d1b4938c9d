package watch

import (
	"os"
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/spawn"
	"netsky/tmux"
)

// All who ask share one look, until a file has changed.
func TestRosterLooksOnce(t *testing.T) {
	h := testworld.Home(t)
	b := testworld.Bus(t, h, "agent1")
	r := newRoster(spawn.New(spawn.Site{Home: h, Bus: b, Tmux: &tmux.Server{Socket: h.Path("run/s")}}))
	calm := func() { // as if nothing had changed for a while
		t.Helper()
		at := time.Now().Add(-time.Minute)
		for _, rel := range dirs {
			if err := os.Chtimes(h.Path(rel), at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	next := func(last look, urgent bool) look {
		t.Helper()
		l, err := r.next(t.Context(), last, urgent)
		if err != nil || l.err != nil {
			t.Fatal(err, l.err)
		}
		return l
	}
	older := func(d time.Duration) { r.known.at, r.asked = r.known.at.Add(-d), r.asked.Add(-d) }

	calm()
	first := next(look{}, true)
	if len(first.list) != 1 || first.list[0].Agent != "agent1" {
		t.Fatalf("%+v", first.list)
	}
	older(lookAnyway - time.Second)
	if l := next(first, false); l.seq != first.seq {
		t.Error("looked again, though nothing has changed")
	}
	if err := h.SaveReport("agent1", agent.Report{Start: "s", State: agent.Idle}); err != nil {
		t.Fatal(err)
	}
	older(lookEvery)
	second := next(first, false)
	if second.seq != first.seq+1 {
		t.Error("a changed report is not looked at")
	}
	// It may change again within the clock's step, and not at once.
	if l := next(second, false); l.seq != second.seq {
		t.Error("looked again at once")
	}
	older(lookEvery)
	third := next(second, false)
	if third.seq != second.seq+1 {
		t.Error("a change so near to the last look is not looked at")
	}
	calm()
	fourth := next(third, true)
	if _, err := r.recent(t.Context()); err != nil || r.known.seq != fourth.seq {
		t.Errorf("a browser caused look %d after look %d, %v", r.known.seq, fourth.seq, err)
	}
	older(2 * recentAge)
	if _, err := r.recent(t.Context()); err != nil || r.known.seq == fourth.seq {
		t.Errorf("a browser is shown what is two seconds old, %v", err)
	}
	if l := next(fourth, false); l.seq != r.known.seq {
		t.Error("the loop does not use the look that was taken for a browser")
	}
	older(lookAnyway)
	if l := next(r.known, false); l.seq != fourth.seq+2 {
		t.Error("what is old is not looked at")
	}
}
