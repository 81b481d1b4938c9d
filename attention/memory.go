package attention

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"netsky/agent"
)

// memoryFile holds what the owner was told and that is not over.
const memoryFile = "state/attention.json"

// A memory is what memoryFile holds.
type memory struct {
	Standing map[string]*standing `json:"standing"`           // by the id of the mail
	WokenMS  []int64              `json:"woken_ms,omitempty"` // when agentinfinity was, in the last 24 hours
	Alerted  map[string]int64     `json:"alerted,omitempty"`  // mail that the owner was alerted to, and when in milliseconds
}

// A standing is something of which the owner is told, or is about to be.
type standing struct {
	Notice
	ToldMS int64 `json:"told_ms,omitempty"` // when that was last tried; 0: never
	Times  int   `json:"times,omitempty"`   // it was told

	missing int // passes in a row in which it was not so
}

// mail returns the id of the n-th mail about it.
func (s *standing) mail(n int) string {
	if s.Every == 0 {
		return s.ID
	}
	return fmt.Sprintf("%s-%d", s.ID, n)
}

// from returns whom the mail about it is from.
func (s *standing) from() agent.ID { return cmp.Or(s.About, agent.Root) }

// overAfter is how many passes must miss a thing before it is over: a screen may be half drawn, a file half
// written.
const overAfter = 2

// next takes what holds now. It returns what is new, of what to tell the owner, and what is over, which stays in
// memory until somebody removes it. What can't be known now is neither.
func (m memory) next(holds []Notice, unknown func(Kind) bool, now time.Time) (begun, due, over []*standing) {
	here := make(map[string]bool, len(holds))
	for _, n := range holds {
		here[n.ID] = true
		s := m.Standing[n.ID]
		if s == nil {
			n.SinceMS = cmp.Or(n.SinceMS, now.UnixMilli())
			s = new(standing)
			m.Standing[n.ID], begun = s, append(begun, s)
		}
		n.SinceMS = cmp.Or(n.SinceMS, s.SinceMS)
		s.Notice, s.missing = n, 0
		since := func(ms int64) time.Duration { return now.Sub(time.UnixMilli(ms)).Abs() } // later is before the clock was set back
		if (s.Times == 0 || n.Every > 0 && since(s.ToldMS) >= n.Every) && since(n.SinceMS) >= n.After && !n.Held {
			due = append(due, s)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.Standing)) {
		s := m.Standing[id]
		if s.ID = id; here[id] || unknown(s.Kind) {
			continue
		}
		if s.missing++; s.missing >= overAfter {
			over = append(over, s)
		}
	}
	return begun, due, over
}
