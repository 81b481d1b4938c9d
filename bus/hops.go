package bus

import (
	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
)

// hopsAfter returns the hop count of the agent's answer to a message it received: one more
// than the message's. If it never received that message, the answer starts a new chain.
func (b *Bus) hopsAfter(id agent.ID, inReplyTo string) int {
	if e, ok := b.cause(id, "", inReplyTo); ok {
		return e.Hops + 1
	}
	return 0
}

// maxInHand bounds the search among claimed files; a receiver claims 30 at most.
const maxInHand = 64

// inHand finds a message among claimed files, by any sender if from is "".
func (b *Bus) inHand(id, from agent.ID, envelopeID string) (envelope.Envelope, bool) {
	fd, err := b.openPlace(id, Claimed)
	if err != nil {
		return envelope.Envelope{}, false
	}
	defer unix.Close(fd)
	var names []string
	mailbox.Names(fd, func(name string) bool {
		if envelope.IsFile(name) {
			names = append(names, name)
		}
		return len(names) < maxInHand
	})
	for _, name := range names {
		e, _, err := b.readEnvelope(fd, name, form{})
		if err == nil && e.ID == envelopeID && (from == "" || e.From == from) {
			return e, true
		}
	}
	return envelope.Envelope{}, false
}

// cause finds a message that the agent received from that sender, from any if from is "":
// one in hand, or one that is remembered.
func (b *Bus) cause(id, from agent.ID, envelopeID string) (envelope.Envelope, bool) {
	if e, ok := b.inHand(id, from, envelopeID); ok {
		return e, true
	}
	m, err := mailbox.OpenMemory(b.home, id, b.forgotten())
	if err != nil {
		return envelope.Envelope{}, false
	}
	defer m.Close()
	e, ok, err := m.Find(envelope.Envelope{ID: envelopeID, From: from})
	return e, ok && err == nil
}
