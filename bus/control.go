package bus

import (
	"slices"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
)

const (
	shutdownWait = 45 * time.Second // a running turn delays the ack no longer
	turnGrace    = time.Second      // from a claim until its holder reports a turn
)

// A shutdown is what has been requested of this receiver under its start id.
type shutdown struct {
	since    time.Time
	requests []*letter // in claimed/, not yet acked
	obeyed   bool
}

// A control obeys and files the control mail of a queue.
type control struct {
	*queue
	post    *sender
	start   string                  // the agent's start id; "" obeys no shutdown
	passing bool                    // leaves shutdowns alone
	cancels func(envelope.Envelope) // gets the cancels, if it is set
	turns   int
	shut    *shutdown
}

// sortOut handles the control mail of a list.
func (c *control) sortOut(list *[]*letter) {
	*list = slices.DeleteFunc(*list, func(l *letter) bool { return l.kind.Control() && c.heed(l) })
}

// heed obeys or files one letter; false leaves it for the next pass.
func (c *control) heed(l *letter) (settled bool) {
	if c.passing && l.kind == envelope.KindShutdown {
		return false
	}
	if !c.readable(l) {
		return false
	}
	if l.env == nil {
		return true
	}
	fresh := !l.claimed
	if fresh {
		claimed, err := c.claim(l)
		if err != nil {
			c.trouble(l.name, "cannot claim "+l.name, err)
			return false
		}
		if !claimed {
			return true
		}
	}
	e, now := *l.env, c.bus.now()
	known := c.seen.Has(e)
	if !known && e.Kind == envelope.KindShutdown && c.obeys(e, now) {
		if c.shut == nil {
			c.shut = &shutdown{since: now}
		}
		c.shut.requests = append(c.shut.requests, l)
		return true
	}
	var err error
	if !known {
		err = c.seen.Add(now, e)
	}
	if err == nil {
		err = c.filed(l.name, mailbox.Why{}, e)
	}
	if err != nil {
		c.trouble(l.name, "cannot file "+l.name, err)
		if fresh {
			c.again = append(c.again, l) // it is in claimed/ now
		}
		return fresh
	}
	c.passed(l.name)
	if e.Kind == envelope.KindShutdown {
		c.report("filed "+l.name+": a shutdown for another start", nil)
	}
	if e.Kind == envelope.KindCancel && !known && !c.withdrawn(e) && c.cancels != nil {
		c.cancels(e)
	}
	return true
}

// withdrawn reports whether the envelope cancels a shutdown, named by its ID, that was
// requested and has not been obeyed yet.
func (c *control) withdrawn(e envelope.Envelope) bool {
	if c.shut == nil || c.shut.obeyed || e.From.IsClone() {
		return false
	}
	i := slices.IndexFunc(c.shut.requests, func(l *letter) bool { return l.env.ID == e.InReplyTo })
	if i < 0 {
		return false
	}
	l := c.shut.requests[i]
	if err := c.file(l.name, mailbox.Why{}, *l.env); err != nil {
		c.trouble(l.name, "cannot cancel the shutdown "+l.env.ID, err)
		return true // it will be obeyed: the sender gets the ack
	}
	c.report("filed "+l.name+": cancelled by "+e.ID, nil)
	if c.shut.requests = slices.Delete(c.shut.requests, i, i+1); len(c.shut.requests) == 0 {
		c.shut = nil
	}
	return true
}

// obeys reports whether a shutdown is for this start and its sender may request it.
func (c *control) obeys(e envelope.Envelope, now time.Time) bool {
	return c.start != "" && e.Start == c.start && !e.From.IsClone() && !e.Expired(now)
}

// due returns for how long a requested shutdown is not acked yet, 0 if it is now.
func (s *shutdown) due(now, lastClaim time.Time, inHand, turns int) time.Duration {
	grace := turnGrace - now.Sub(lastClaim)
	switch {
	case now.Sub(s.since) >= shutdownWait:
	case turns > 0:
		return time.Second
	case inHand > 0 && grace > 0:
		return min(grace, turnGrace)
	}
	return 0
}

// answerShutdown acks a requested shutdown when it is time, and returns when to try again;
// 0 means never.
func (c *control) answerShutdown(inHand int) time.Duration {
	if c.shut == nil || len(c.shut.requests) == 0 {
		return 0
	}
	now := c.bus.now()
	if wait := c.shut.due(now, c.lastClaim, inHand, c.turns); wait > 0 {
		return wait
	}
	ack := envelope.Envelope{From: c.id, To: agent.Root, Kind: envelope.KindShutdownAck}
	if c.turns > 0 {
		ack.Extra = envelope.CutOff()
	}
	c.shut.requests = slices.DeleteFunc(c.shut.requests, func(l *letter) bool {
		err := c.post.answer(*l.env, ack)
		if err == nil {
			err = c.file(l.name, mailbox.Why{}, *l.env)
		}
		if err != nil {
			c.trouble(l.name, "cannot ack the shutdown "+l.env.ID, err)
		}
		return err == nil
	})
	left := len(c.shut.requests) > 0
	// A receiver ends even if its ack cannot be written.
	c.shut.obeyed = c.shut.obeyed || !left || now.Sub(c.shut.since) >= shutdownWait
	if left {
		return time.Second
	}
	return 0
}
