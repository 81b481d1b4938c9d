package breaker

import (
	"context"
	"time"

	"netsky/agent"
)

// AllBudget names the breaker of what all agents together may use.
const AllBudget = "budget of all agents"

// Budget names the breaker of what one agent may use.
func Budget(id agent.ID) string { return "budget of " + string(id) }

// Bar keeps everything from the agents that the breaker is about until a time, or until Lift if
// that is zero. The text says why, about names what the owner is asked about, and refused is their
// no. It reports whether that changed anything.
func (b Breaker) Bar(ctx context.Context, by agent.ID, text, about string, refused bool, until time.Time) (changed bool, err error) {
	retry := int64(0)
	if !until.IsZero() {
		retry = until.UnixMilli()
	}
	f := agent.Fault{Reason: agent.Budget, Account: b.name, Text: text, UntilMS: retry}
	if now, err := b.Load(); err == nil && now.Tripped() && now.Fault == f && now.About == about && now.Refused == refused {
		return false, nil
	}
	err = b.change(ctx, func(s *State, now time.Time) bool {
		since := now.UnixMilli()
		if s.Tripped() && s.About == about {
			since = s.SinceMS
		}
		*s = State{Account: b.name, Fault: f, By: by, About: about, Refused: refused, SinceMS: since, TripMS: now.UnixMilli(), RetryMS: retry}
		return true
	})
	return err == nil, err
}

// Lift ends what Bar began. It reports whether anything was barred.
func (b Breaker) Lift(ctx context.Context) (lifted bool, err error) {
	if !b.home.Mark(b.rel).Exists() {
		return false, nil
	}
	err = b.change(ctx, func(s *State, _ time.Time) bool { lifted = s.Tripped(); *s = State{}; return true })
	return lifted, err
}
