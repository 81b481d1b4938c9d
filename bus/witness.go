package bus

import (
	"encoding/json"
	"fmt"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
	"netsky/home"
)

// Witness records that the agent's runtime has been seen with the envelopes, for the
// mailbox's holder: it confirms those that it has in hand, now or at its next start. The
// notes are not fsynced; if a power loss takes them, the envelopes are offered again.
func (b *Bus) Witness(id agent.ID, envelopeIDs ...string) error {
	var lines []byte
	for _, e := range envelopeIDs {
		if !envelope.IsID(e) {
			return envelope.Invalidf("id: %s", envelope.Clip(e))
		}
		line, err := json.Marshal(agent.Event{MS: b.now().UnixMilli(), Event: agent.EventSeen, ID: e})
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	if len(lines) == 0 {
		return nil
	}
	f, err := b.home.OpenAppend(home.EventsFile(id))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := mailbox.Write(int(f.Fd()), lines); err != nil {
		return fmt.Errorf("record what %s has seen: %w", id, err)
	}
	return nil
}

// eachSeen calls fn with the ID of every envelope that was seen since the last call, and
// when. Repeating an ID does no harm.
func eachSeen(tail *home.EventTail, fn func(id string, ms int64)) error {
	if err := mailbox.Step("read"); err != nil {
		return err
	}
	return tail.Read(func(e agent.Event) {
		if e.Event == agent.EventSeen && e.ID != "" {
			fn(e.ID, e.MS)
		}
	})
}
