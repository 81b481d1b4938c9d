package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
	"netsky/home"
)

// A memory knows what addresses have received: by the file seen, and by the files that are still there.
type memory struct{ *boxes }

// SeenText reports whether a text given to a runtime consists only of renderings of
// envelopes that the mailbox remembers, each from its own sender, so that nothing is lost
// by dropping it. It needs no lock, and is fast enough for a process that runs only for
// this: it looks in the file seen from its end, as duplicates are usually recent. An envelope
// that is just being confirmed may not count yet.
func (r memory) SeenText(id agent.ID, text string) (again bool, err error) {
	list, alone := envelope.Unrender(text)
	if !alone || len(list) == 0 {
		return false, nil
	}
	m, err := mailbox.OpenMemory(r.home, id, r.forgotten())
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
func (r memory) forgotten() time.Time { return r.now().Add(-r.keep) }

// hopsAfter returns the hop count of the agent's answer to a message it received: one more
// than the message's. If it never received that message, the answer starts a new chain.
func (r memory) hopsAfter(id agent.ID, inReplyTo string) int {
	if e, ok := r.cause(id, "", inReplyTo); ok {
		return e.Hops + 1
	}
	return 0
}

// maxInHand bounds the search among claimed files; a receiver claims 30 at most.
const maxInHand = 64

// inHand finds a message among claimed files, by any sender if from is "".
func (r memory) inHand(id, from agent.ID, envelopeID string) (envelope.Envelope, bool) {
	fd, err := r.openPlace(id, Claimed)
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
		e, _, err := r.readEnvelope(fd, name, form{})
		if err == nil && e.ID == envelopeID && (from == "" || e.From == from) {
			return e, true
		}
	}
	return envelope.Envelope{}, false
}

// cause finds a message that the agent received from that sender, from any if from is "":
// one in hand, or one that is remembered.
func (r memory) cause(id, from agent.ID, envelopeID string) (envelope.Envelope, bool) {
	if e, ok := r.inHand(id, from, envelopeID); ok {
		return e, true
	}
	m, err := mailbox.OpenMemory(r.home, id, r.forgotten())
	if err != nil {
		return envelope.Envelope{}, false
	}
	defer m.Close()
	e, ok, err := m.Find(envelope.Envelope{ID: envelopeID, From: from})
	return e, ok && err == nil
}

// Remembered reports for each envelope whether the mailbox remembers its ID or idempotency
// key from its sender, so that a copy of it will be filed unread. It reads the file seen
// once and needs no lock.
func (r memory) Remembered(id agent.ID, list []envelope.Envelope) ([]bool, error) {
	known := make([]bool, len(list))
	if len(list) == 0 {
		return known, nil
	}
	wanted := make(map[mailbox.Key][]int)
	for i, e := range list {
		for _, k := range mailbox.KeysOf(e) {
			wanted[k] = append(wanted[k], i)
		}
	}
	cutoff := r.forgotten().UnixMilli()
	err := mailbox.EachLine(r.home, id, func(line []byte) {
		if ms, e, ok := mailbox.ParseSeen(line); ok && ms >= cutoff {
			for _, k := range mailbox.KeysOf(e) {
				for _, i := range wanted[k] {
					known[i] = true
				}
			}
		}
	})
	return known, err
}

// taken reports whether the recipient has taken the message, and returns the file that
// holds it. One that only waits may still be lost in a power cut, so it is sent again.
func (r memory) taken(ctx context.Context, e envelope.Envelope) (file string, taken bool, err error) {
	m, err := mailbox.OpenMemory(r.home, e.To, r.forgotten())
	if err != nil {
		return "", false, err
	}
	defer m.Close()
	if _, taken, err = m.Find(envelope.Envelope{ID: e.ID, From: e.From}); err != nil {
		return "", false, err
	}
	list, err := r.Received(ctx, e.To, e.ID)
	if err != nil {
		return "", false, err
	}
	if slices.ContainsFunc(list, func(x Entry) bool { return x.Reason == mailbox.Duplicate }) { // another copy than the one that was taken
		if list, err = r.locateIn(ctx, e.To, Delivered, e.ID); err != nil {
			return "", false, err
		}
	}
	for _, x := range list {
		switch {
		case x.Reason == mailbox.Duplicate:
		case x.Envelope.ID != e.ID || x.Envelope.From != e.From || x.Place == Delivered && !taken: // the last is forgotten
		case x.Envelope.Text != e.Text:
			return "", false, fmt.Errorf("id: %s %w for another message to %s; nothing was sent", e.ID, ErrUsed, e.To)
		case x.Why != "":
			return "", false, fmt.Errorf("id: %s %w for a message to %s that was %s; nothing was sent", e.ID, ErrUsed, e.To, x.Fact())
		default:
			file = x.Name
		}
	}
	return file, taken, nil
}

// Witness records that the agent's runtime has been seen with the envelopes, for the
// mailbox's holder: it confirms those that it has in hand, now or at its next start. The
// notes are not fsynced; if a power loss takes them, the envelopes are offered again.
func (r memory) Witness(id agent.ID, envelopeIDs ...string) error {
	var lines []byte
	for _, e := range envelopeIDs {
		if !envelope.IsID(e) {
			return envelope.Invalidf("id: %s", envelope.Clip(e))
		}
		line, err := json.Marshal(agent.Event{MS: r.now().UnixMilli(), Event: agent.EventSeen, ID: e})
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	if len(lines) == 0 {
		return nil
	}
	f, err := r.home.OpenAppend(home.EventsFile(id))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := mailbox.Write(int(f.Fd()), lines); err != nil {
		return fmt.Errorf("record what %s has seen: %w", id, err)
	}
	return nil
}
