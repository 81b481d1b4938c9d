package courier

import (
	"context"
	"time"
)

// Why a session begins that continues in a program that ran before.
const (
	Cleared   = "clear"   // by a person: it knows nothing of earlier messages
	Compacted = "compact" // it knows a summary of them
)

// forgot notes what the conversation has to be told after its session has begun anew.
func (m *Courier) forgot(why string) {
	switch why {
	case Cleared:
		m.startup, m.facts = m.o.Startup != "", true
	case Compacted:
		m.facts = true
	}
}

// factsWithin limits the time for finding the facts; without them, the text goes on.
const factsWithin = 3 * time.Second

// preface puts the notices that are due in front of a text into the flight, and returns
// their texts.
func (m *Courier) preface(ctx context.Context, f *flight) []string {
	f.prefaced = m.startup || m.facts
	if m.startup {
		f.preface = append(f.preface, m.o.Startup)
	}
	if m.facts && m.o.Facts != nil {
		within, cancel := context.WithTimeout(ctx, factsWithin)
		defer cancel()
		if text := m.o.Facts(within, m.startup, f.offer().About); text != "" {
			f.preface = append(f.preface, text)
		}
	}
	return f.preface
}
