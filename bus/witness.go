package bus

import (
	"encoding/json"
	"fmt"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus/disk"
	"netsky/bus/envelope"
)

// Witness notes that the agent's runtime has been seen with the envelopes, for
// whoever holds the mailbox: it confirms those that it has in hand, or when it
// next starts. The notes are not fsynced; when they are lost with the machine's
// power, the envelopes are offered again.
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
	if err := disk.Write(int(f.Fd()), lines); err != nil {
		return fmt.Errorf("note what %s has seen: %w", id, err)
	}
	return nil
}

// eachSeen calls fn with the ID of every envelope that was seen since the last
// call. One told twice does no harm.
func eachSeen(tail *home.EventTail, fn func(id string)) error {
	if err := disk.Step("read"); err != nil {
		return err
	}
	return tail.Read(func(e agent.Event) {
		if e.Event == agent.EventSeen && e.ID != "" {
			fn(e.ID)
		}
	})
}
