// Package breaker keeps agents from using a vendor's account while it serves nobody.
//
// There is one circuit breaker for each account: an account that has run into a limit, a
// login or an outage is tripped, and then nothing is offered to an agent that uses it and
// no agent is started on it. At the time when the vendor said that it serves again, or
// after a back-off, one agent tries; when the model has answered it, the others follow one
// after the other. So it is with a login that was not accepted, too, since a vendor's trouble
// looks the same; that one is also tried as soon as the owner has acted. A limit of one model has a breaker of its own, which bars only the
// agents that have run into it.
//
// The owner's budgets bar agents in the same way, each under a name of its own ([Budget]); there
// is nothing to try, so such a breaker is closed at its time, or when whoever accounts for the
// budget lifts it.
//
// A breaker is a file, state/breakers/<account>.json, replaced as a whole under the lock
// "breakers". No file means that the account can be used, and so does a damaged one, which
// the next change replaces. A crash leaves the last state. An agent that dies while it
// tries keeps the others waiting for TrialTime.
package breaker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/home"
)

const (
	// TrialTime is how long the one agent that tries may go without a word of the model.
	TrialTime = 5 * time.Minute
	// Spacing is the time between two agents that go on after a trial has succeeded, each
	// with its first message, and following how long they are kept apart.
	Spacing   = 400 * time.Millisecond
	following = 30 * time.Second
	// jitter is the most that is added to the time of the vendor's.
	jitter = 2 * time.Second
	// longest is the most that a vendor's time is believed: limits are monthly at most.
	longest = 35 * 24 * time.Hour
	soonest = 2 * time.Second // a trial after a trip
	// unneeded is how long an account that may be tried again is left alone before nobody
	// is taken to need it.
	unneeded = 10 * time.Minute
)

// Name returns the account's name for the breaker of one of its models; "" is the account.
func Name(account, scope string) string {
	if account == "" || scope == "" {
		return account
	}
	return account + ", " + scope
}

// A Breaker is that of one account, or of a model on it. Several processes may use it.
type Breaker struct {
	home home.Dir
	rel  string
	name string
}

// Of returns the breaker of an account. The account "" has none: it is always closed.
func Of(h home.Dir, account string) Breaker {
	return Breaker{home: h, name: account, rel: home.BreakersDir + "/" + fileName(account)}
}

// fileName keeps what is readable of an account's name, and a hash of all of it.
func fileName(account string) string {
	sum := sha256.Sum256([]byte(account))
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, account)
	return strings.Trim(plain[:min(len(plain), 40)], "-") + "-" + hex.EncodeToString(sum[:4]) + ".json"
}

// A State is what a breaker's file says.
type State struct {
	Account string      `json:"account"`
	Fault   agent.Fault `json:"fault"`           // the latest
	By      agent.ID    `json:"by"`              // the agent that ran into it
	SinceMS int64       `json:"since_ms"`        // when the account stopped serving
	TripMS  int64       `json:"trip_ms"`         // the latest trip
	RetryMS int64       `json:"retry_ms"`        // when one agent may try; 0, of a budget: when it is lifted
	Trips   int         `json:"trips"`           // in a row
	About   string      `json:"about,omitempty"` // of a budget: which
	// Refused, of a budget, reports that the owner was asked and has left it so.
	Refused bool   `json:"refused,omitempty"`
	Trial   *Trial `json:"trial,omitempty"`
	// ClosedMS is when the model answered again; the others follow from NextMS on, and
	// Through are those that have: they are no longer held back.
	ClosedMS int64      `json:"closed_ms,omitempty"`
	NextMS   int64      `json:"next_ms,omitempty"`
	Through  []agent.ID `json:"through,omitempty"`
}

// A Trial is the one try of a tripped account.
type Trial struct {
	Agent agent.ID `json:"agent"`
	AtMS  int64    `json:"at_ms"`
}

// Retry returns when the account is tried again; zero of a budget that only its owner lifts.
func (s State) Retry() time.Time {
	if s.RetryMS == 0 {
		return time.Time{}
	}
	return time.UnixMilli(s.RetryMS)
}

// Tripped reports whether the account is in doubt: nobody has been answered since the last
// trip.
func (s State) Tripped() bool { return s.SinceMS != 0 && s.ClosedMS == 0 }

// Due reports whether one agent may try the account.
func (s State) Due(now time.Time) bool { return s.RetryMS != 0 && !now.Before(s.Retry()) }

// Unneeded reports whether the account could have been tried for so long that nobody on it
// has anything to do.
func (s State) Unneeded(now time.Time) bool {
	return s.RetryMS != 0 && now.Sub(s.Retry()) > unneeded
}

// Refuses reports whether the account does not accept its login, and is left alone because of
// that: an act of the owner's, such as a login, may end it.
func (s State) Refuses(now time.Time) bool {
	return s.Tripped() && s.Fault.Reason == agent.Login && !s.Due(now)
}

// Acted reports whether the owner has acted since the account refused its login: one of the
// times, of a login or a start, is later, and not in the future.
func (s State) Acted(now time.Time, times ...time.Time) bool {
	return s.Refuses(now) && slices.ContainsFunc(times, func(t time.Time) bool {
		return t.UnixMilli() > s.TripMS && !t.After(now)
	})
}

// sane returns the state without times from another clock, which would hold the account
// back for as long as the clock was set back.
func (s State) sane(now time.Time) State {
	soon := now.Add(time.Minute).UnixMilli()
	if s.TripMS > soon || s.SinceMS > soon {
		s.TripMS, s.SinceMS, s.Trial = 1, min(s.SinceMS, now.UnixMilli()), nil
		if s.RetryMS != 0 && s.Fault.UntilMS == 0 {
			s.RetryMS = now.UnixMilli()
		}
	}
	if s.Fault.Reason == agent.Budget && s.Due(now) {
		return State{} // its day is over
	}
	if s.RetryMS > now.Add(longest+jitter).UnixMilli() || s.RetryMS == 0 && s.Fault.Reason == agent.Login { // of a netsky that waited for the owner
		s.RetryMS = now.UnixMilli()
	}
	return s
}

// A Pass says whether an agent may use an account now.
type Pass struct {
	OK    bool
	State State     // of the breaker, if not OK
	Again time.Time // when to ask again, if not OK; zero: when the file has changed
}

// Allow asks for an agent to use the account now. Whoever gets a Pass must use it: it may
// be the one trial. On an error nothing is known.
func (b Breaker) Allow(ctx context.Context, id agent.ID) (p Pass, err error) {
	if b.name == "" || !b.home.Mark(b.rel).Exists() {
		return Pass{OK: true}, nil
	}
	err = b.change(ctx, func(s *State, now time.Time) bool {
		p = s.allow(id, now)
		return p.OK
	})
	return p, err
}

func (s *State) allow(id agent.ID, now time.Time) Pass {
	switch {
	case s.SinceMS == 0:
		return Pass{OK: true}
	case s.ClosedMS != 0 && now.Sub(time.UnixMilli(s.ClosedMS)) > following:
		*s = State{}
		return Pass{OK: true}
	case s.ClosedMS != 0:
		if slices.Contains(s.Through, id) {
			return Pass{OK: true}
		}
		if next := time.UnixMilli(s.NextMS); now.Before(next) && next.Sub(now) < following {
			return Pass{State: *s, Again: next}
		}
		s.NextMS, s.Through = now.Add(Spacing).UnixMilli(), append(s.Through, id)
		return Pass{OK: true}
	case s.RetryMS == 0:
		return Pass{State: *s}
	case now.Before(s.Retry()):
		return Pass{State: *s, Again: s.Retry()}
	}
	if t := s.Trial; t != nil && t.Agent != id {
		// A time in the future is that of a clock that was set back.
		if end := time.UnixMilli(t.AtMS).Add(TrialTime); now.Before(end) && end.Sub(now) <= TrialTime {
			return Pass{State: *s, Again: end}
		}
	}
	s.Trial = &Trial{Agent: id, AtMS: now.UnixMilli()}
	return Pass{OK: true}
}

// Trip records that an agent ran into a fault of the account. first reports whether
// nobody had before. On an error it is not recorded.
func (b Breaker) Trip(ctx context.Context, id agent.ID, f agent.Fault) (s State, first bool, err error) {
	if b.name == "" {
		return s, false, nil
	}
	err = b.change(ctx, func(now *State, at time.Time) bool {
		first = now.trip(b.name, id, f, at)
		s = *now
		return true
	})
	return s, first, err
}

func (s *State) trip(account string, id agent.ID, f agent.Fault, now time.Time) (first bool) {
	first = s.SinceMS == 0 || s.ClosedMS != 0
	tried := first || s.Due(now)
	if first {
		trips := s.Trips
		if now.Sub(time.UnixMilli(s.ClosedMS)) > following {
			trips = 0
		}
		*s = State{Account: account, SinceMS: now.UnixMilli(), Trips: trips}
	}
	if tried {
		s.Trips++
	}
	if !first && f.Reason == s.Fault.Reason && f.Scope == s.Fault.Scope {
		f.Text = s.Fault.Text // one with a number of its own in it is no other matter
	}
	retry := retryAt(f, s.Trips, now)
	if !tried && retry <= s.RetryMS {
		return first // of a turn that ran when the account was tripped already
	}
	s.Fault, s.By, s.TripMS, s.RetryMS, s.Trial = f, id, now.UnixMilli(), retry, nil
	return first
}

// retryAt returns when an account is tried after so many trips in a row, in milliseconds. A
// time that has passed was read late: it is tried soon, and if it is refused again the vendor's
// time is worth nothing.
func retryAt(f agent.Fault, trips int, now time.Time) int64 {
	if until := f.Until(); until.After(now) || !until.IsZero() && trips == 1 {
		if most := now.Add(longest); until.After(most) {
			until = most
		}
		return max(until.UnixMilli(), now.Add(soonest).UnixMilli()) + rand.Int64N(jitter.Milliseconds())
	}
	wait, most := 5*time.Second, 5*time.Minute
	switch f.Reason {
	case agent.RateLimit, agent.Login:
		wait, most = 30*time.Second, 10*time.Minute
	case agent.UsageLimit, agent.Billing:
		wait, most = 5*time.Minute, time.Hour
	}
	for range min(trips-1, 16) {
		wait = min(2*wait, most)
	}
	return now.Add(wait + rand.N(wait/10)).UnixMilli()
}

// Answered records that the model has answered an agent in a turn that began at a time. An
// answer in a turn that is older than the trip proves nothing, unless that is the trial's.
// closed reports whether the account serves again by that.
func (b Breaker) Answered(ctx context.Context, id agent.ID, began time.Time) (closed bool, err error) {
	if b.name == "" || !b.home.Mark(b.rel).Exists() {
		return false, nil
	}
	err = b.change(ctx, func(s *State, now time.Time) bool {
		trial := s.Trial != nil && s.Trial.Agent == id
		if !s.Tripped() || !trial && began.UnixMilli() <= s.TripMS {
			return false
		}
		s.ClosedMS, s.Trial = now.UnixMilli(), nil
		s.NextMS, s.Through = now.Add(Spacing).UnixMilli(), []agent.ID{id}
		closed = true
		return true
	})
	return closed, err
}

// Release ends the trial of an agent whose turn has ended without telling whether the
// account serves: another may try.
func (b Breaker) Release(ctx context.Context, id agent.ID) error {
	if b.name == "" || !b.home.Mark(b.rel).Exists() {
		return nil
	}
	return b.change(ctx, func(s *State, _ time.Time) bool {
		if s.Trial == nil || s.Trial.Agent != id {
			return false
		}
		s.Trial = nil
		return true
	})
}

// Drop forgets an account that is no longer used: another login has taken its place. An
// agent that uses it all the same finds out by itself.
func (b Breaker) Drop(ctx context.Context) error {
	if b.name == "" || !b.home.Mark(b.rel).Exists() {
		return nil
	}
	return b.change(ctx, func(s *State, _ time.Time) bool { *s = State{}; return true })
}

// Retry lets one agent try now: the owner has acted. It reports whether the account was
// tripped.
func (b Breaker) Retry(ctx context.Context) (tripped bool, err error) {
	if b.name == "" || !b.home.Mark(b.rel).Exists() {
		return false, nil
	}
	err = b.change(ctx, func(s *State, now time.Time) bool {
		if tripped = s.Tripped(); tripped {
			s.RetryMS, s.Trial = now.UnixMilli(), nil
		}
		return tripped
	})
	return tripped, err
}

// change reads the state, lets f change it and stores it if f says so; the zero State is
// no file.
func (b Breaker) change(ctx context.Context, f func(s *State, now time.Time) (changed bool)) (err error) {
	l, err := b.home.WaitLock(ctx, home.BreakersLock, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Unlock()) }()
	s, err := home.Load[State](b.home, b.rel)
	if err != nil {
		s = State{} // damaged or absent: it must not keep anybody from trying
	}
	now := time.Now()
	s = s.sane(now)
	if !f(&s, now) {
		return nil
	}
	if s.SinceMS == 0 {
		if err := b.home.Remove(b.rel); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return b.home.Save(b.rel, s, false)
}

// Load returns the breaker's state; the zero State if the account was not tripped lately.
func (b Breaker) Load() (State, error) {
	s, err := home.Load[State](b.home, b.rel)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	return s.sane(time.Now()), err
}
