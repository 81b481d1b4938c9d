package bus

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"netsky/agent"
)

// A sighting is a line of state/events/<agent>.jsonl that concerns the bus.
// Others write other events there.
type sighting struct {
	MS    int64  `json:"ms"`
	Event string `json:"event"`
	ID    string `json:"id,omitempty"`
}

const eventSeen = "seen"

// Witness notes that the agent's runtime has been seen with the envelope, for
// whoever holds the mailbox: it confirms the envelope if it has it in hand, or
// when it next starts. The note is not fsynced; when it is lost with the
// machine's power, the envelope is offered again.
func (b *Bus) Witness(id agent.ID, envelopeID string) error {
	if !isID(envelopeID) {
		return invalidf("id: %s", clip(envelopeID))
	}
	f, err := b.home.OpenAppend(agent.EventsFile(id))
	if err != nil {
		return err
	}
	defer f.Close()
	line, err := json.Marshal(sighting{b.now().UnixMilli(), eventSeen, envelopeID})
	if err != nil {
		return err
	}
	if err := sysWrite(int(f.Fd()), append(line, '\n')); err != nil {
		return fmt.Errorf("note that %s has seen %s: %w", id, envelopeID, err)
	}
	return nil
}

// An eventTail reads what is appended to an events file.
type eventTail struct {
	home agent.Home
	rel  string
	ino  uint64
	at   int64 // how far it has been read
}

// read calls fn with every ID that was seen since the last call. A file that
// was rotated or cut is read from its beginning: an ID told twice does no harm.
func (t *eventTail) read(fn func(id string)) error {
	f, err := t.home.OpenDir(agent.EventsDir, false)
	if err != nil {
		return t.ignoreMissing(err)
	}
	defer f.Close()
	return t.readIn(int(f.Fd()), t.rel, fn)
}

func (t *eventTail) readIn(dir int, name string, fn func(id string)) error {
	fd, err := sysOpen(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", name, err)
	}
	defer unix.Close(fd)
	st, err := sysFstat(fd)
	if err != nil {
		return fmt.Errorf("stat %s: %w", name, err)
	}
	if err := checkStat(st, os.Getuid()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if st.Ino != t.ino || st.Size < t.at {
		t.ino, t.at = st.Ino, 0
	}
	n, err := eachSighting(io.NewSectionReader(preader(fd), t.at, st.Size-t.at), fn)
	t.at += n
	return err
}

func (t *eventTail) ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// eachSighting calls fn for the whole lines of r and returns their length.
// Lines that are no sightings are others' business.
func eachSighting(r io.Reader, fn func(id string)) (n int64, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	long := false // the line is longer than the buffer, so not ours
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case err == io.EOF:
			return n, nil
		case errors.Is(err, bufio.ErrBufferFull):
			n += int64(len(line))
			long = true
			continue
		case err != nil:
			return n, err
		}
		n += int64(len(line))
		var s sighting
		if !long && json.Unmarshal(line, &s) == nil && s.Event == eventSeen && s.ID != "" {
			fn(s.ID)
		}
		long = false
	}
}

// witnessed reads all of an agent's sightings, those of the rotated file first.
func (b *Bus) witnessed(id agent.ID, fn func(id string)) (*eventTail, error) {
	name := string(id) + ".jsonl"
	old := &eventTail{home: b.home, rel: name + ".1"}
	if err := old.read(fn); err != nil {
		return nil, err
	}
	tail := &eventTail{home: b.home, rel: name}
	return tail, tail.read(fn)
}
