package bus

import (
	"strings"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus/disk"
	"netsky/bus/envelope"
)

// hopsAfter is the hop count of an answer that the agent gives to a message it
// got: one more than the message's. The message is looked for among what the
// agent has in hand and in the end of its seen file; an older one counts as
// none, and then the answer is the first of a new chain.
func (b *Bus) hopsAfter(id agent.ID, inReplyTo string) int {
	if e, ok := b.inHand(id, "", inReplyTo); ok {
		return e.Hops + 1
	}
	box, err := disk.OpenDir(b.home, home.Mailbox(id))
	if err != nil {
		return 0
	}
	defer unix.Close(box)
	fd, err := disk.Open(box, seenFile, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	st, err := disk.Fstat(fd)
	if err != nil {
		return 0
	}
	tail := make([]byte, min(st.Size, 128<<10))
	n, _ := disk.ReaderAt(fd).ReadAt(tail, st.Size-int64(len(tail)))
	text := string(tail[:n])
	// The last line that has the ID between tabs.
	for {
		i := strings.LastIndex(text, "\t"+inReplyTo+"\t")
		if i < 0 {
			return 0
		}
		start := strings.LastIndexByte(text[:i], '\n') + 1
		line, _, _ := strings.Cut(text[start:], "\n")
		if _, e, ok := parseSeen([]byte(line)); ok && e.ID == inReplyTo {
			return e.Hops + 1
		}
		text = text[:i+1]
	}
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
	disk.Names(fd, func(name string) bool {
		if isMail(name) {
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

// cause finds a message that has come to the agent from that sender: one in
// hand, or one that is remembered.
func (b *Bus) cause(id, from agent.ID, envelopeID string) (envelope.Envelope, bool) {
	if e, ok := b.inHand(id, from, envelopeID); ok {
		return e, true
	}
	m, err := b.openMemory(id)
	if err != nil {
		return envelope.Envelope{}, false
	}
	defer m.close()
	e, ok, err := m.find(envelope.Envelope{ID: envelopeID, From: from})
	return e, ok && err == nil
}
