package bus

import (
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
)

// Seen reports whether the mailbox remembers every one of the envelopes, from any sender.
// It needs no lock, and is fast enough for a process that runs only for this. An envelope
// that is just being confirmed may not count yet.
func (b *Bus) Seen(id agent.ID, envelopeIDs ...string) (all bool, err error) {
	list := make([]envelope.Envelope, len(envelopeIDs))
	for i, e := range envelopeIDs {
		if !envelope.IsID(e) {
			return false, envelope.Invalidf("id: %s", envelope.Clip(e))
		}
		list[i].ID = e
	}
	return b.recall(id, list)
}

// SeenText reports whether a text given to a runtime consists only of renderings of
// envelopes that the mailbox remembers, each from its own sender, so that nothing is lost
// by dropping it. It is for the same callers as Seen, which can't tell apart two senders'
// messages with the same ID.
func (b *Bus) SeenText(id agent.ID, text string) (again bool, err error) {
	list, alone := envelope.Unrender(text)
	if !alone || len(list) == 0 {
		return false, nil
	}
	return b.recall(id, list)
}

// recall looks for the lines of the envelopes in the file seen, from its end: duplicates
// are usually recent. The file only grows, or is replaced.
func (b *Bus) recall(id agent.ID, list []envelope.Envelope) (all bool, err error) {
	m, err := mailbox.OpenMemory(b.home, id, b.forgotten())
	if err != nil {
		return false, err
	}
	defer m.Close()
	for _, e := range list {
		if _, ok, err := m.Find(e); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// forgotten returns the time before which IDs are forgotten.
func (b *Bus) forgotten() time.Time { return b.now().Add(-b.keep) }
