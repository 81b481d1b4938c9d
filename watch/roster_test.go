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
			testworld.Must(t, os.Chtimes(h.Path(rel), at, at))
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
	testworld.Equal(t, next(first, false).seq, first.seq, "looked again, though nothing has changed")
	testworld.Must(t, h.SaveReport("agent1", agent.Report{Start: "s", State: agent.Idle}))
	older(lookEvery)
	second := next(first, false)
	testworld.Equal(t, second.seq, first.seq+1, "a changed report is not looked at")
	// It may change again within the clock's step, and not at once.
	testworld.Equal(t, next(second, false).seq, second.seq, "looked again at once")
	older(lookEvery)
	third := next(second, false)
	testworld.Equal(t, third.seq, second.seq+1, "a change so near to the last look is not looked at")
	calm()
	fourth := next(third, true)
	if _, err := r.recent(t.Context()); err != nil || r.known.seq != fourth.seq {
		t.Errorf("a browser caused look %d after look %d, %v", r.known.seq, fourth.seq, err)
	}
	older(2 * recentAge)
	if _, err := r.recent(t.Context()); err != nil || r.known.seq == fourth.seq {
		t.Errorf("a browser is shown what is two seconds old, %v", err)
	}
	testworld.Equal(t, next(fourth, false).seq, r.known.seq, "the loop does not use the look that was taken for a browser")
	older(lookAnyway)
	testworld.Equal(t, next(r.known, false).seq, fourth.seq+2, "what is old is not looked at")
}
