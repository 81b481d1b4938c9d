package mailbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
)

// OpenMemory opens the memory of a mailbox; the caller closes it. Without a mailbox, or for
// one that has remembered nothing yet, it is empty.
func OpenMemory(h home.Dir, id agent.ID, cutoff time.Time) (*Memory, error) {
	if _, err := agent.ParseAddress(string(id)); err != nil {
		return nil, err
	}
	dir, err := OpenDir(h, home.Mailbox(id))
	if errors.Is(err, fs.ErrNotExist) {
		return &Memory{fd: -1}, nil
	}
	if err != nil {
		return nil, err
	}
	defer unix.Close(dir)
	fd, size, err := openLines(dir, SeenName, h.Path(home.Mailbox(id), SeenName), unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return &Memory{fd: -1}, nil
	}
	if err == nil {
		err = Step("read")
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &Memory{fd: fd, size: size, cutoff: cutoff.UnixMilli()}, nil
}

// Close closes the file.
func (m *Memory) Close() {
	if m.fd >= 0 {
		unix.Close(m.fd)
	}
}

const (
	recallChunk = 256 << 10 // small enough for the processor's cache
	seenMost    = 1 << 10   // a line is shorter
)

// A Memory is the file seen as it was at one moment.
type Memory struct {
	fd     int
	size   int64
	cutoff int64 // older lines are forgotten
	buf    []byte
	at     int64 // where buf begins in the file
	n      int   // how much of it is read
}

// Find finds an envelope; the part that was read last is searched first. The result has
// only what a line of the file holds.
func (m *Memory) Find(e envelope.Envelope) (found envelope.Envelope, ok bool, err error) {
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
		end = at + seenMost // a line that crossed the border is complete here
	}
	return envelope.Envelope{}, false, nil
}

func (m *Memory) read(at int64) error {
	if m.n > 0 && m.at == at {
		return nil
	}
	if m.n = 0; m.buf == nil {
		m.buf = make([]byte, recallChunk)
	}
	n, err := ReaderAt(m.fd).ReadAt(m.buf[:min(recallChunk, m.size-at)], at)
	if n == 0 && err != nil {
		return fmt.Errorf("read %s: %w", SeenName, err)
	}
	m.at, m.n = at, n
	return nil
}

// search finds an envelope's line in buf. It parses lines only as far as necessary, for
// there may be very many.
func (m *Memory) search(e envelope.Envelope, word []byte) (found envelope.Envelope, ok bool) {
	part := m.buf[:m.n]
	if m.at > 0 { // it may start within a line
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
			ms, found, ok := ParseSeen(part[:end])
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

// senderField returns the second field of part's first line, with the tabs around it;
// nil if there is none. A malformed line is skipped together with the next.
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

// EachLine calls fn with each remembered line of a mailbox, the oldest first. A line is
// valid only during the call.
func EachLine(h home.Dir, id agent.ID, fn func(line []byte)) error {
	m, err := OpenMemory(h, id, time.Time{})
	if err != nil {
		return err
	}
	defer m.Close()
	if m.fd < 0 {
		return nil
	}
	_, err = eachLine(m.fd, 1<<62, "what "+string(id)+" remembers", func(line []byte) error { fn(line); return nil })
	return err
}
