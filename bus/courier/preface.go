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

// A Memory holds what a conversation may not know any more: its facts precede the first text
// after the program has compacted or cleared it, and, after Options.Startup, the first text
// of a fresh one.
type Memory interface {
	// Due reports whether the facts precede the first text whatever it follows.
	Due() bool
	// Facts returns them; "" adds nothing. told are the ids of the messages that the text
	// itself is about.
	Facts(ctx context.Context, fresh bool, told []string) string
	// Forgot makes the facts due, whatever happens to this process, until Told.
	Forgot()
	// Told says that the program has been given the facts.
	Told()
}

// forgot notes what the conversation has to be told after its session has begun anew. It
// reports whether that is anything.
func (m *Courier) forgot(why string) bool {
	m.shortened = m.shortened || why == Cleared || why == Compacted
	switch why {
	case Cleared:
		m.startup, m.facts = m.o.Startup != "", true
	case Compacted:
		m.facts = true
	default:
		return false
	}
	return true
}

// forgotten has the facts told even if this process ends before.
func (m *Courier) forgotten() {
	if m.o.Memory != nil {
		m.o.Memory.Forgot()
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
	if m.facts && m.o.Memory != nil {
		within, cancel := context.WithTimeout(ctx, factsWithin)
		defer cancel()
		if text := m.o.Memory.Facts(within, m.startup, f.offer().About); text != "" {
			f.preface = append(f.preface, text)
		}
	}
	return f.preface
}
