// This file checks that a program keeps what courier.Runtime promises. A new
// runtime's tests run it on the real program; the rest, from the claim to the one
// answer, is tested once, in package courier.
//
// It has no state of its own and writes nothing.

package testworld

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus/courier"
	"netsky/bus/envelope"
)

// A Rig is a running program that nothing else talks to.
type Rig struct {
	Agent   agent.ID
	Runtime courier.Runtime
	Events  courier.Source
	// Say returns a message text on which the model ends its turn with these words.
	Say func(words string) string
	// Hold returns a message text whose turn lasts until it is interrupted.
	Hold func() string
	// Holding, if set, reports whether the model has been asked for that turn. Claude
	// Code begins one that is interrupted before once more by itself.
	Holding func() bool
	// Remembers: the program has a conversation that can be asked.
	Remembers bool
}

// patience is how long a program may take for anything.
const patience = time.Minute

// Run runs the checks, in order, on one program.
func Run(t *testing.T, r Rig) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*patience)
	defer cancel()
	c := &check{T: t, Rig: r, ctx: ctx, traits: r.Runtime.Traits()}
	c.sound()
	c.ready()
	c.nothing()
	c.one("first")
	c.batch()
	c.interrupted()
	c.long()
	c.one("last")
}

type check struct {
	*testing.T
	Rig
	ctx    context.Context
	traits courier.Traits
	events []courier.Event // all that were read
	n      int             // messages made
}

// sound checks the traits, whatever the program is.
func (c *check) sound() {
	c.Helper()
	t, p := c.traits, c.traits.Pace
	if t.Name == "" || t.Batch < 1 || t.BatchBytes < 1 || t.Text < 0 || t.Losses < 0 {
		c.Errorf("traits: %+v", t)
	}
	if len(p.Unseen) == 0 || p.Busy <= 0 || p.Idle <= 0 || p.Told <= 0 || p.Silent < p.Told || p.Burst > 0 && p.Every <= 0 {
		c.Errorf("pace: %+v", p)
	}
	if slices.Min(p.Unseen) <= 0 {
		c.Errorf("pace: %v: an offer would be repeated at once", p.Unseen)
	}
}

// wait waits for a condition, and reads events meanwhile.
func (c *check) wait(what string, ok func() bool) {
	c.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(patience); ; {
		if err := c.Events.Read(func(e courier.Event) { c.events = append(c.events, e) }); err != nil {
			c.Fatalf("read events: %v", err)
		}
		if ok() {
			return
		}
		if time.Now().After(until) {
			c.Fatalf("never came about: %s; state %+v; events %+v", what, c.Runtime.State(c.ctx), c.events)
		}
		select {
		case <-tick.C:
		case <-c.Events.C():
		}
	}
}

func (c *check) ready() {
	c.Helper()
	c.wait("it takes a text", func() bool {
		s := c.Runtime.State(c.ctx)
		return s.Takes && s.State == agent.Idle
	})
}

// nothing: nothing is reported about what never happened.
func (c *check) nothing() {
	c.Helper()
	if err := c.Runtime.Interrupt(c.ctx, agent.Owner); err == nil {
		c.Error("Interrupt of no turn: no error")
	}
	if held, err := c.Runtime.Holds(c.ctx, "nobody-s"); held || err != nil {
		c.Errorf("Holds of a message that never came = %v, %v", held, err)
	}
	if e, ok, err := c.Runtime.Ended(c.ctx, "nobody-s", ""); ok || err != nil {
		c.Errorf("Ended of a message that never came = %+v, %v, %v", e, ok, err)
	}
}

// offer makes an offer of messages.
func (c *check) offer(texts ...string) (o courier.Offer) {
	now := time.Now()
	var all []string
	for _, text := range texts {
		c.n++
		e := envelope.Envelope{ID: fmt.Sprintf("m-%d", c.n), From: agent.Owner, To: c.Agent, Text: text, Time: now}
		o.Messages = append(o.Messages, e)
		o.About = append(o.About, e.ID)
		all = append(all, envelope.Render(e, now))
	}
	o.Text = strings.Join(all, "\n")
	return o
}

func (c *check) mustOffer(o courier.Offer) {
	c.Helper()
	if err := c.Runtime.Offer(c.ctx, o); err != nil {
		c.Fatalf("Offer = %v", err)
	}
}

// told waits until the program has been seen with all messages, and returns the turn's
// number, if it has one.
func (c *check) told(o courier.Offer) (turn string) {
	c.Helper()
	c.wait("an event tells of "+strings.Join(o.About, ", "), func() bool {
		seen := make(map[string]bool)
		for _, e := range c.events {
			if e.Event.Event == agent.EventSeen {
				seen[e.ID] = true
			}
			if e.Event.Event != agent.EventPrompt {
				continue
			}
			for _, id := range e.IDs {
				seen[id] = true
				if slices.Contains(o.About, id) {
					turn = e.ID
				}
			}
		}
		return !slices.ContainsFunc(o.About, func(id string) bool { return !seen[id] })
	})
	return turn
}

// ended waits for the end of the n-th turn that ended, and returns it.
func (c *check) ended(n int) (end courier.Event) {
	c.Helper()
	c.wait(fmt.Sprintf("the end of turn %d", n), func() bool {
		at := 0
		for _, e := range c.events {
			if e.Event.Event == agent.EventStop || e.Event.Event == agent.EventStopFailed {
				if at++; at == n {
					end = e
					return true
				}
			}
		}
		return false
	})
	return end
}

func (c *check) ends() (n int) {
	for _, e := range c.events {
		if e.Event.Event == agent.EventStop || e.Event.Event == agent.EventStopFailed {
			n++
		}
	}
	return n
}

// mustSay checks a turn from its offer to what is remembered of it.
func (c *check) mustSay(o courier.Offer, words string) {
	c.Helper()
	before := c.ends()
	c.ready()
	c.mustOffer(o)
	turn := c.told(o)
	end := c.ended(before + 1)
	if end.Event.Event != agent.EventStop || !strings.Contains(end.Text, words) || end.ID != turn && end.ID != "" && turn != "" {
		c.Errorf("turn %q ended with %+v, want %q", turn, end, words)
	}
	c.ready()
	for _, id := range o.About {
		c.remembered(id, turn, agent.EventStop, words)
	}
}

// remembered checks what the conversation reports about a message; it may be written a
// moment after the turn's end.
func (c *check) remembered(id, turn string, how agent.EventKind, words string) {
	c.Helper()
	if !c.Remembers {
		if held, err := c.Runtime.Holds(c.ctx, id); held || err != nil {
			c.Errorf("Holds without a conversation = %v, %v", held, err)
		}
		return
	}
	c.wait("the conversation holds "+id, func() bool {
		held, err := c.Runtime.Holds(c.ctx, id)
		return held && err == nil
	})
	for _, number := range []string{turn, ""} {
		if number == "" && how == agent.EventStopFailed {
			continue // without a number it need not report that a turn was interrupted
		}
		c.wait("the conversation tells how the turn of "+id+" ended, by "+number, func() bool {
			e, ok, err := c.Runtime.Ended(c.ctx, id, number)
			return ok && err == nil && e.Event == how && (strings.Contains(e.Text, words) || e.Error == words)
		})
	}
}

// one is one message.
func (c *check) one(words string) {
	c.Helper()
	c.mustSay(c.offer(c.Say(words)), words)
}

// batch is several messages in one text.
func (c *check) batch() {
	c.Helper()
	if c.traits.Batch > 1 {
		c.mustSay(c.offer(c.Say("not the last"), c.Say("of both")), "of both")
	}
}

// interrupted: a turn can be interrupted from outside, and what is offered meanwhile is
// either refused or arrives later.
func (c *check) interrupted() {
	c.Helper()
	before := c.ends()
	held := c.offer(c.Hold())
	c.mustOffer(held)
	if c.traits.Queues || c.Remembers { // one that is interrupted earlier may be in no conversation
		c.told(held)
	}
	c.wait("it is busy", func() bool {
		s := c.Runtime.State(c.ctx)
		return (s.State == agent.Busy || s.State == agent.Waiting) && (c.Holding == nil || c.Holding())
	})
	later := c.offer(c.Say("later"))
	err := c.Runtime.Offer(c.ctx, later)
	switch {
	case c.traits.Queues && err != nil:
		c.Errorf("Offer during a turn = %v, but it queues", err)
	case !c.traits.Queues && !errors.Is(err, courier.ErrNotReady):
		c.Errorf("Offer during a turn = %v, want %v", err, courier.ErrNotReady)
	}
	c.wait("the turn can be interrupted", func() bool { return c.Runtime.Interrupt(c.ctx, agent.Owner) == nil })
	turn := c.told(held)
	if c.traits.Queues {
		c.told(later)
		c.wait("the next turn ends", func() bool { n := c.ends(); return n > before && strings.Contains(c.ended(n).Text, "later") })
	}
	c.ready()
	for _, e := range c.events { // it need not be an event, but no event may say otherwise
		if e.ID == turn && turn != "" && e.Event.Event == agent.EventStop && e.Error == "" {
			c.Errorf("the interrupted turn ended with %+v", e)
		}
	}
	if c.Remembers {
		c.remembered(held.About[0], turn, agent.EventStopFailed, courier.Interrupted)
	}
	if !c.traits.Queues {
		c.mustSay(later, "later")
	}
}

// long is a message of nearly the maximum length.
func (c *check) long() {
	c.Helper()
	if c.traits.Text == 0 {
		return
	}
	words := c.Say("of the long one")
	o := c.offer(words)
	room := c.traits.Text - len(o.Text) - 2
	c.mustSay(c.offer(strings.Repeat("x", room/2)+"\n"+words+"\n"+strings.Repeat("y", room/2)), "of the long one")
}
