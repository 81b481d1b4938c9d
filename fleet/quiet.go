package fleet

import (
	"context"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/internal/words"
)

// A QuietRequest asks that the owner is not told of agents that hang. Without anything it asks what is
// in force.
type QuietRequest struct {
	For time.Duration `json:"for,omitzero"` // from now on; of several the latest end counts
	Off bool          `json:"off,omitempty"`
}

// A QuietResult says what is in force now.
type QuietResult struct {
	Until time.Time `json:"until,omitzero"`
	Was   bool      `json:"was,omitempty"` // it was quiet before
}

// Quiet holds off messages about agents that hang.
func (f Answers) Quiet(ctx context.Context, r QuietRequest) (v QuietResult, err error) {
	if err := f.May("quiet"); err != nil {
		return v, err
	}
	if r.For != 0 && (r.Off || r.For < time.Minute || r.For > attention.LongestQuiet) {
		return v, usagef("quiet: %v: must be a duration from 1m to %s, such as 1h, or off", r.For, words.Span(attention.LongestQuiet))
	}
	if err := f.Make(); err != nil {
		return v, err
	}
	now := time.Now()
	q := attention.QuietNow(f.Home, now)
	switch v.Was = q.UntilMS != 0; {
	case r.Off:
		_, err = attention.EndQuiet(ctx, f.Home, now)
		return v, err
	case r.For != 0:
		q, err = attention.Silence(ctx, f.Home, r.For, string(agent.Owner), now)
	}
	v.Until = q.Until()
	return v, err
}
