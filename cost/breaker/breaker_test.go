package breaker_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"netsky/agent"
	"netsky/cost/breaker"
	"netsky/home"
	"netsky/internal/testworld"
)

const account = "anthropic me@example.com"

func newBreaker(tb testing.TB) (breaker.Breaker, home.Dir) {
	tb.Helper()
	h := testworld.Got(home.At(filepath.Join(tb.TempDir(), "h")))(tb)
	testworld.Got(h.Make())(tb)
	return breaker.Of(h, account), h
}

func limit(until time.Duration) agent.Fault {
	f := agent.Fault{Reason: agent.UsageLimit, Account: account, Text: "You've hit your 5-hour limit"}
	if until > 0 {
		f.UntilMS = time.Now().Add(until).UnixMilli()
	}
	return f
}

func trip(tb testing.TB, b breaker.Breaker, id agent.ID, f agent.Fault) (s breaker.State, first bool) {
	tb.Helper()
	s, first, err := b.Trip(tb.Context(), id, f)
	testworld.Must(tb, err)
	return s, first
}

func allow(tb testing.TB, b breaker.Breaker, id agent.ID) breaker.Pass {
	tb.Helper()
	return testworld.Got(b.Allow(tb.Context(), id))(tb)
}

func answered(tb testing.TB, b breaker.Breaker, id agent.ID, began time.Time) bool {
	tb.Helper()
	return testworld.Got(b.Answered(tb.Context(), id, began))(tb)
}

// TestReset: ten agents meet a limit of a minute. Nobody is allowed before its reset, one
// tries then, and all others follow within ten seconds of the reset, apart from each other.
func TestReset(t *testing.T) {
	b, h := newBreaker(t)
	synctest.Test(t, func(t *testing.T) {
		reset := time.Now().Add(time.Minute)
		for i := range 10 {
			if _, first := trip(t, b, agent.Clone(i+1), limit(time.Minute)); first != (i == 0) {
				t.Errorf("agent%d: first = %v", i+1, first)
			}
		}
		if list, err := breaker.List(h); err != nil || len(list) != 1 || list[0].Fault.Reason != agent.UsageLimit || list[0].Retry().Before(reset) {
			t.Errorf("List = %+v, %v", list, err)
		}
		p := allow(t, b, agent.Clone(1))
		if p.OK || p.Again.Before(reset) || p.Again.After(reset.Add(2*time.Second)) {
			t.Fatalf("Allow = %+v, want a retry just after %v", p, reset)
		}
		time.Sleep(time.Until(p.Again))
		tried := 0
		for i := range 10 {
			if allow(t, b, agent.Clone(i+1)).OK {
				tried++
			}
		}
		testworld.Equal(t, tried, 1, "agents try at the reset")
		began := time.Now()
		time.Sleep(time.Second) // its turn
		if !answered(t, b, agent.Clone(1), began) {
			t.Error("the answered trial does not close the breaker")
		}
		last := time.Now()
		for i := 1; i < 10; i++ {
			p := allow(t, b, agent.Clone(i+1))
			for !p.OK {
				time.Sleep(time.Until(p.Again))
				p = allow(t, b, agent.Clone(i+1))
			}
			if d := time.Since(last); d < breaker.Spacing {
				t.Errorf("agent%d follows %v after the one before", i+1, d)
			}
			last = time.Now()
			// Who has gone on is not held back again, nor holds anybody back.
			for _, n := range []int{1, i + 1} {
				if p := allow(t, b, agent.Clone(n)); !p.OK {
					t.Errorf("agent%d, which has gone on, waits for %v with its next message", n, time.Until(p.Again))
				}
			}
		}
		if d := last.Sub(reset); d > 10*time.Second {
			t.Errorf("all go on %v after the reset", d)
		}
		time.Sleep(time.Minute)
		if p := allow(t, b, agent.Root); !p.OK {
			t.Errorf("Allow later = %+v", p)
		}
		if s, err := b.Load(); err != nil || s.SinceMS != 0 || s.Through != nil {
			t.Errorf("left: %+v, %v", s, err)
		}
	})
}

// TestResetPassed: a limit that is read after its reset is tried at once, and left alone for
// the usual pauses if it is refused all the same.
func TestResetPassed(t *testing.T) {
	b, _ := newBreaker(t)
	synctest.Test(t, func(t *testing.T) {
		f := limit(0)
		f.UntilMS = time.Now().Add(-10 * time.Second).UnixMilli()
		s, _ := trip(t, b, agent.Clone(1), f)
		if got := time.Until(s.Retry()); got > 4*time.Second {
			t.Errorf("it is tried in %v", got)
		}
		time.Sleep(time.Until(s.Retry()))
		if !allow(t, b, agent.Clone(1)).OK {
			t.Error("nobody may try")
		}
		if s, _ := trip(t, b, agent.Clone(1), f); time.Until(s.Retry()) < 5*time.Minute {
			t.Errorf("refused again, it is tried in %v", time.Until(s.Retry()))
		}
	})
}

// TestBackOff: without a stated time the pauses grow, and only a new trial makes them grow.
func TestBackOff(t *testing.T) {
	for _, tc := range []struct {
		reason      agent.Reason
		first, most time.Duration
	}{
		{agent.Overloaded, 5 * time.Second, 5 * time.Minute},
		{agent.Network, 5 * time.Second, 5 * time.Minute},
		{agent.RateLimit, 30 * time.Second, 10 * time.Minute},
		{agent.Login, 30 * time.Second, 10 * time.Minute},
		{agent.UsageLimit, 5 * time.Minute, time.Hour},
		{agent.Billing, 5 * time.Minute, time.Hour},
	} {
		t.Run(string(tc.reason), func(t *testing.T) {
			b, _ := newBreaker(t)
			synctest.Test(t, func(t *testing.T) {
				f := agent.Fault{Reason: tc.reason, Account: account}
				want := tc.first
				for range 12 {
					s, _ := trip(t, b, agent.Clone(1), f)
					if got := time.Until(s.Retry()); got < want-time.Millisecond || got > want+want/10 {
						t.Fatalf("pause %d is %v, want %v", s.Trips, got, want)
					}
					again, _ := trip(t, b, agent.Clone(2), f) // it had a turn too
					if again.Trips != s.Trips {
						t.Fatalf("a second agent's trip counts: %d, then %d", s.Trips, again.Trips)
					}
					time.Sleep(time.Until(again.Retry()))
					if !allow(t, b, agent.Clone(1)).OK {
						t.Fatal("nobody may try")
					}
					want = min(2*want, tc.most)
				}
			})
		})
	}
}

// TestLogin: a login that was refused is tried again by one agent as soon as the owner has
// acted, and one that a netsky of before left for the owner is tried at once.
func TestLogin(t *testing.T) {
	b, h := newBreaker(t)
	synctest.Test(t, func(t *testing.T) {
		refused := agent.Fault{Reason: agent.Login, Account: account, Text: "401, request 1"}
		acts := func(s breaker.State, after time.Duration) bool {
			return s.Acted(time.Now(), time.UnixMilli(s.TripMS).Add(after))
		}
		s, _ := trip(t, b, agent.Clone(1), refused)
		time.Sleep(10 * time.Second)
		if p := allow(t, b, agent.Clone(1)); p.OK || acts(s, -time.Second) || acts(s, time.Hour) || !acts(s, time.Second) {
			t.Fatalf("Allow = %+v; acted: %v %v %v", p, acts(s, -time.Second), acts(s, time.Hour), acts(s, time.Second))
		}
		if tripped, err := b.Retry(t.Context()); !tripped || err != nil {
			t.Fatalf("Retry = %v, %v", tripped, err)
		}
		if s, _ := b.Load(); acts(s, time.Second) {
			t.Error("what is to be tried is called untried, so that the trial would be taken away")
		}
		if !allow(t, b, agent.Clone(1)).OK {
			t.Error("no trial after the owner has acted")
		}
		if allow(t, b, agent.Clone(2)).OK {
			t.Error("a second trial")
		}
		refused.Text = "401, request 2"
		s, _ = trip(t, b, agent.Clone(1), refused)
		if s.Trips != 2 || s.Fault.Text != "401, request 1" {
			t.Errorf("after the trial: %d trips, %q; want it to be the same matter", s.Trips, s.Fault.Text)
		}
		s.RetryMS = 0
		files, err := os.ReadDir(h.Path(home.BreakersDir))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		testworld.Must(t, h.Save(home.BreakersDir+"/"+files[0].Name(), s, false))
		if !allow(t, b, agent.Clone(3)).OK {
			t.Error("it waits for ever")
		}
	})
}

// TestTrialDies: an agent that dies while it tries keeps the others waiting for a time.
func TestTrialDies(t *testing.T) {
	b, _ := newBreaker(t)
	synctest.Test(t, func(t *testing.T) {
		s, _ := trip(t, b, agent.Clone(1), limit(time.Minute))
		time.Sleep(time.Until(s.Retry()))
		allow(t, b, agent.Clone(1))
		if p := allow(t, b, agent.Clone(2)); p.OK || time.Until(p.Again) != breaker.TrialTime {
			t.Errorf("Allow = %+v", p)
		}
		if !allow(t, b, agent.Clone(1)).OK {
			t.Error("the agent that tries is stopped")
		}
		time.Sleep(breaker.TrialTime)
		if !allow(t, b, agent.Clone(2)).OK {
			t.Error("nobody may take the trial over")
		}
	})
}

// TestOldAnswer: an answer of a turn that ran when the account was tripped proves nothing;
// one of a later turn, such as a person's or one that the program continued, does.
func TestOldAnswer(t *testing.T) {
	b, _ := newBreaker(t)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		time.Sleep(time.Second)
		trip(t, b, agent.Clone(1), limit(time.Hour))
		time.Sleep(time.Second)
		if answered(t, b, agent.Clone(2), began) || allow(t, b, agent.Clone(2)).OK {
			t.Error("an older turn's answer closed the breaker")
		}
		if !answered(t, b, agent.Clone(2), time.Now()) {
			t.Error("a later turn's answer does not close the breaker")
		}
		time.Sleep(breaker.Spacing)
		if !allow(t, b, agent.Clone(1)).OK {
			t.Error("not allowed after the account has served")
		}
	})
}

// TestFlapping: a fault while the others follow goes on with the growing pauses and is a
// new event for the owner.
func TestFlapping(t *testing.T) {
	b, _ := newBreaker(t)
	synctest.Test(t, func(t *testing.T) {
		f := agent.Fault{Reason: agent.Overloaded, Account: account}
		for i := range 5 {
			s, first := trip(t, b, agent.Clone(1), f)
			if s.Trips != i+1 || !first {
				t.Fatalf("trip %d: %+v, first %v", i+1, s, first)
			}
			time.Sleep(time.Until(s.Retry()))
			allow(t, b, agent.Clone(1))
			answered(t, b, agent.Clone(1), time.Now())
		}
		time.Sleep(time.Hour)
		if s, _ := trip(t, b, agent.Clone(1), f); s.Trips != 1 {
			t.Errorf("an hour later: %d trips", s.Trips)
		}
	})
}

// TestDamaged: no file keeps anybody from trying for good.
func TestDamaged(t *testing.T) {
	b, h := newBreaker(t)
	trip(t, b, agent.Clone(1), limit(time.Hour))
	files, err := os.ReadDir(h.Path(home.BreakersDir))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	path := h.Path(home.BreakersDir, files[0].Name())
	for _, text := range []string{"", "nonsense", `{"since_ms":"x"}`} {
		testworld.Must(t, os.WriteFile(path, []byte(text), 0o600))
		testworld.Fails(t, testworld.Err(breaker.List(h)), "", "%q: List reports nothing", text)
		if p := allow(t, b, agent.Clone(1)); !p.OK {
			t.Errorf("%q: Allow = %+v", text, p)
		}
	}
}

// TestNoAccount: what no account is known for is never stopped.
func TestNoAccount(t *testing.T) {
	_, h := newBreaker(t)
	b := breaker.Of(h, "")
	trip(t, b, agent.Clone(1), limit(time.Hour))
	if !allow(t, b, agent.Clone(1)).OK {
		t.Error("an agent without an account is stopped")
	}
	if list, err := breaker.List(h); err != nil || len(list) != 0 {
		t.Errorf("List = %v, %v", list, err)
	}
}

// TestClockSetBack: a time far in the future is believed for as long as limits last, and
// a trial in the future for no longer than a trial.
func TestClockSetBack(t *testing.T) {
	b, _ := newBreaker(t)
	synctest.Test(t, func(t *testing.T) {
		s, _ := trip(t, b, agent.Clone(1), limit(10*365*24*time.Hour))
		if d := time.Until(s.Retry()); d > 36*24*time.Hour {
			t.Errorf("a retry in %v", d)
		}
	})
}

// However long an account's name is, it has a file of its own.
func TestLongNames(t *testing.T) {
	_, h := newBreaker(t)
	long := strings.Repeat("claude/somebody@example.com ", 500)
	for _, name := range []string{long + "a", long + "b"} {
		if _, first, err := breaker.Of(h, name).Trip(t.Context(), "agent1", limit(0)); err != nil || !first {
			t.Errorf("%t %v", first, err)
		}
	}
	if list, err := breaker.List(h); err != nil || len(list) != 2 {
		t.Errorf("%d breakers, %v", len(list), err)
	}
}
