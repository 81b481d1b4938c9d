package bus

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus/disk"
	"netsky/bus/envelope"
)

// Seen reports whether the mailbox remembers every one of the envelopes, from
// whatever sender. It needs no lock, and is quick enough for a process that
// lives only to ask. What is being confirmed at this moment may not count yet.
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

// SeenText reports whether a text that a runtime was given is nothing but
// renderings of envelopes that the mailbox remembers, each from its own sender,
// so that nobody misses it. It is for the same callers as Seen, which can't tell
// two senders' messages of one ID apart.
func (b *Bus) SeenText(id agent.ID, text string) (again bool, err error) {
	list, alone := envelope.Unrender(text)
	if !alone || len(list) == 0 {
		return false, nil
	}
	return b.recall(id, list)
}

// recall looks for the lines of the envelopes in the file seen, from its end:
// what is asked about twice has come lately. The file only grows, or is replaced.
func (b *Bus) recall(id agent.ID, list []envelope.Envelope) (all bool, err error) {
	m, err := b.openMemory(id)
	if err != nil {
		return false, err
	}
	defer m.close()
	for _, e := range list {
		if _, ok, err := m.find(e); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// openMemory opens what a mailbox remembers; the caller closes it. No mailbox,
// or one that has remembered nothing yet, is an empty memory.
func (b *Bus) openMemory(id agent.ID) (*memory, error) {
	if _, err := agent.Parse(string(id)); err != nil {
		return nil, err
	}
	dir, err := disk.OpenDir(b.home, home.Mailbox(id))
	if errors.Is(err, fs.ErrNotExist) {
		return &memory{fd: -1}, nil
	}
	if err != nil {
		return nil, err
	}
	defer unix.Close(dir)
	fd, err := disk.Open(dir, seenFile, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err == unix.ENOENT {
		return &memory{fd: -1}, nil
	}
	path := b.home.Path(home.Mailbox(id), seenFile)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	st, err := disk.Fstat(fd)
	if err == nil {
		err = disk.CheckStat(st)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := disk.Step("read"); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &memory{fd: fd, size: st.Size, cutoff: b.now().Add(-b.keep).UnixMilli(), buf: make([]byte, recallChunk)}, nil
}

func (m *memory) close() {
	if m.fd >= 0 {
		unix.Close(m.fd)
	}
}

const (
	recallChunk = 256 << 10 // stays in the processor's cache
	seenMost    = 1 << 10   // a line is shorter
)

// A memory is the file seen as it was at one moment.
type memory struct {
	fd     int
	size   int64
	cutoff int64 // what is older is forgotten
	buf    []byte
	at     int64 // where buf begins in the file
	n      int   // how much of it is read
}

// find looks for an envelope, in the part that was read last first. What it
// finds has no more than a line of the file tells.
func (m *memory) find(e envelope.Envelope) (found envelope.Envelope, ok bool, err error) {
	word := []byte(e.ID + "\t")
	if m.n > 0 {
		if found, ok = m.search(e, word); ok {
			return found, true, nil
		}
	}
	for end := m.size; end > 0; {
		at := max(0, end-recallChunk)
		if err := m.read(at); err != nil {
			return envelope.Envelope{}, false, err
		}
		if found, ok = m.search(e, word); ok {
			return found, true, nil
		}
		if at == 0 {
			break
		}
		end = at + seenMost // a line that lay across the border is whole here
	}
	return envelope.Envelope{}, false, nil
}

func (m *memory) read(at int64) error {
	if m.n > 0 && m.at == at {
		return nil
	}
	m.n = 0
	n, err := disk.ReaderAt(m.fd).ReadAt(m.buf[:min(recallChunk, m.size-at)], at)
	if n == 0 && err != nil {
		return fmt.Errorf("read %s: %w", seenFile, err)
	}
	m.at, m.n = at, n
	return nil
}

// search looks for an envelope's line in what is read. It takes lines apart only
// as far as it must, for there may be very many.
func (m *memory) search(e envelope.Envelope, word []byte) (found envelope.Envelope, ok bool) {
	part := m.buf[:m.n]
	if m.at > 0 { // it may begin within a line
		part = part[bytes.IndexByte(part, '\n')+1:]
	}
	var from []byte // the sender of the last line, with its tabs
	for len(part) > msDigits {
		if !bytes.HasPrefix(part[msDigits:], from) || from == nil {
			if from = senderField(part); from == nil {
				return envelope.Envelope{}, false
			}
		}
		id := msDigits + len(from)
		end := bytes.IndexByte(part[id:], '\n') + id + 1
		if end == id {
			return envelope.Envelope{}, false // half a line
		}
		if bytes.HasPrefix(part[id:], word) {
			ms, found, ok := parseSeen(part[:end])
			if ok && ms >= m.cutoff && (e.From == "" || found.From == e.From) {
				return found, true
			}
		}
		part = part[end:]
	}
	return envelope.Envelope{}, false
}

// msDigits is how many digits the milliseconds have, until the year 2286.
const msDigits = 13

// senderField is the second field of the line that part begins with, with the
// tabs around it; nil if there is none. A line that is not like ours is passed
// over together with the next.
func senderField(part []byte) []byte {
	from := bytes.IndexByte(part[msDigits:], '\t')
	if from < 0 {
		return nil
	}
	to := bytes.IndexByte(part[msDigits+from+1:], '\t')
	if to < 0 {
		return nil
	}
	return part[msDigits : msDigits+from+1+to+1]
}
