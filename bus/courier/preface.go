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

// A preface is what is due to be told before the next text. It belongs to the goroutine of its
// courier.
type preface struct {
	o         *Options
	startup   bool // the startup text is due
	facts     bool // the facts are due
	shortened bool // the conversation was, since a message found no room in it
}

func newPreface(o *Options) preface {
	return preface{o: o, startup: o.Fresh && o.Startup != "", facts: o.Fresh || o.Memory != nil && o.Memory.Due(), shortened: o.Fresh}
}

// forgot notes what the conversation has to be told after its session has begun anew. It
// reports whether that is anything.
func (p *preface) forgot(why string) bool {
	p.shortened = p.shortened || why == Cleared || why == Compacted
	switch why {
	case Cleared:
		p.startup, p.facts = p.o.Startup != "", true
	case Compacted:
		p.facts = true
	default:
		return false
	}
	return true
}

// forgotten has the facts told even if this process ends before.
func (p *preface) forgotten() {
	if p.o.Memory != nil {
		p.o.Memory.Forgot()
	}
}

// factsWithin limits the time for finding the facts; without them, the text goes on.
const factsWithin = 3 * time.Second

// texts puts the notices that are due in front of a text into the flight, and returns
// their texts.
func (p *preface) texts(ctx context.Context, f *flight) []string {
	f.prefaced = p.startup || p.facts
	if p.startup {
		f.preface = append(f.preface, p.o.Startup)
	}
	if p.facts && p.o.Memory != nil {
		within, cancel := context.WithTimeout(ctx, factsWithin)
		defer cancel()
		if text := p.o.Memory.Facts(within, p.startup, f.offer().About); text != "" {
			f.preface = append(f.preface, text)
		}
	}
	return f.preface
}

// told records that the program has what was due.
func (p *preface) told() {
	if p.facts && p.o.Memory != nil {
		p.o.Memory.Told()
	}
	p.startup, p.facts = false, false
}
