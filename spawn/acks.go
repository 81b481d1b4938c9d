// This file tells who has acknowledged a request to shut down. It reads agent0's mailbox
// and changes nothing in it.

package spawn

import (
	"strings"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
)

// A AckWatch finds the acks that have reached agent0 since it began. agent0 may be taking them
// meanwhile, so they count wherever in its mailbox they are.
type AckWatch struct {
	bus  *bus.Bus
	seen map[string]bool     // file names
	mail []envelope.Envelope // that may be acks
}

// NewAckWatch ignores what is there already. Without a mailbox there is nowhere for an ack to
// arrive: that is an error.
func NewAckWatch(b *bus.Bus) (*AckWatch, error) {
	a := &AckWatch{bus: b, seen: make(map[string]bool)}
	if err := b.Make(agent.Root); err != nil {
		return a, err
	}
	for _, p := range bus.Arrived() {
		names, err := b.Names(agent.Root, p)
		if err != nil {
			return a, err
		}
		for _, n := range names {
			a.seen[n] = true
		}
	}
	return a, nil
}

// Look reads what has arrived since the last look.
func (a *AckWatch) Look() {
	for _, p := range bus.Arrived() {
		names, err := a.bus.Names(agent.Root, p)
		if err != nil {
			continue // looked at again; without an answer the time runs out
		}
		for _, n := range names {
			if a.seen[n] {
				continue
			}
			e, err := a.bus.Read(agent.Root, p, n)
			if err != nil {
				continue // moved on: found there, or at the next look
			}
			a.seen[n] = true
			if e.Err == nil && (e.Envelope.Kind == envelope.KindShutdownAck || saysAck(e.Envelope.Text)) {
				a.mail = append(a.mail, e.Envelope)
			}
		}
	}
}

// Of reports whether the agent has acked the request: by kind, or in words, as a model
// does that writes its own envelope. unfinished reports that its turn was still running.
func (a *AckWatch) Of(id agent.ID, request string) (acked, unfinished bool) {
	for _, e := range a.mail {
		switch {
		case e.From != id:
		case e.InReplyTo == request, e.ID == request && saysAck(e.Text):
			return true, e.Unfinished()
		}
	}
	return false, false
}

func saysAck(text string) bool { return strings.Contains(strings.ToLower(text), "shutdown ack") }
