package home

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"netsky/agent"

	"golang.org/x/sys/unix"
)

// An EventTail reads an agent's events as they are appended. It is not safe for
// concurrent use.
type EventTail struct {
	home  Dir
	id    agent.ID
	aside bool // begins with the file that was moved aside
	// The files are kept open, so that what came before a rotation is not missed.
	// Whoever had the older one open then may still write to it, so it is read on
	// until the next.
	older, present eventFile
	in             *bufio.Reader
}

// An eventFile is one file of events, as far as it has been read.
type eventFile struct {
	f  *os.File // nil: not open
	at int64
}

// Events reads the agent's events from the beginning of the present file.
// The caller must call Close.
func (h Dir) Events(id agent.ID) *EventTail { return &EventTail{home: h, id: id} }

// AllEvents is Events that begins with the file that was last moved aside.
func (h Dir) AllEvents(id agent.ID) *EventTail { return &EventTail{home: h, id: id, aside: true} }

// Close closes the files. The tail may be read on and begins with the present
// file then.
func (t *EventTail) Close() error {
	return errors.Join(t.older.close(), t.present.close())
}

// Read calls fn with each whole line that has come since the last call, and
// passes over what is no event. After a cut by hand it begins anew.
func (t *EventTail) Read(fn func(agent.Event)) error {
	if err := t.read(fn); err != nil {
		return fmt.Errorf("events of %s: %w", t.id, err)
	}
	return nil
}

func (t *EventTail) read(fn func(agent.Event)) error {
	for range 3 { // the file that is there, and two rotations since
		if t.present.f == nil {
			if err := t.olderLines(fn); err != nil {
				return err
			}
			if err := t.open(); err != nil {
				return err
			}
		}
		// Who wrote to the older file and then to this one is read in that order.
		size, err := t.present.size()
		if err != nil {
			return err
		}
		if err := t.olderLines(fn); err != nil {
			return err
		}
		if t.present.f == nil {
			return nil
		}
		if err := t.lines(&t.present, size, fn); err != nil {
			return err
		}
		if same, err := t.named(); same || err != nil {
			return err
		}
		t.older.close()
		t.older, t.present = t.present, eventFile{}
	}
	return nil
}

// open opens the present file, if there is one, and only then the one that was
// moved aside, so that none between them slips by. That one may have come and
// gone since the last look, while there was none under the name; or it is known.
func (t *EventTail) open() error {
	first := t.older.f == nil
	if err := t.present.open(t.home, EventsFile(t.id)); err != nil {
		return err
	}
	var aside eventFile
	if err := aside.open(t.home, EventsFile(t.id)+asideSuffix); err != nil || aside.f == nil {
		return err
	}
	for _, known := range []eventFile{t.older, t.present} {
		if same, err := known.is(aside); same || err != nil {
			return errors.Join(err, aside.close())
		}
	}
	if first && !t.aside { // kept open to be known again: numbers of files are given out anew
		var err error
		if aside.at, err = aside.size(); err != nil {
			return errors.Join(err, aside.close())
		}
	}
	t.aside = false
	t.older.close()
	t.older = aside
	return nil
}

// named reports whether the open file is still the one under its name, or the
// last that was moved aside and has no follower yet.
func (t *EventTail) named() (bool, error) {
	open, err := t.present.f.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Lstat(t.home.Path(EventsFile(t.id)))
	if errors.Is(err, fs.ErrNotExist) {
		named, err = os.Lstat(t.home.Path(EventsFile(t.id) + asideSuffix))
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		if older := t.older.f; err == nil && older != nil {
			if info, err := older.Stat(); err != nil || os.SameFile(info, named) {
				return true, err // the present one was removed by hand
			}
		}
	}
	return err == nil && os.SameFile(open, named), err
}

// is reports whether both are one file.
func (e eventFile) is(other eventFile) (bool, error) {
	if e.f == nil || other.f == nil {
		return false, nil
	}
	a, err := e.f.Stat()
	if err != nil {
		return false, err
	}
	b, err := other.f.Stat()
	return err == nil && os.SameFile(a, b), err
}

func (e *eventFile) open(h Dir, rel string) error {
	f, err := h.openFile(rel, unix.O_RDONLY, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	e.f, e.at = f, 0
	return nil
}

func (e *eventFile) close() error {
	if e.f == nil {
		return nil
	}
	f := e.f
	*e = eventFile{}
	return f.Close()
}

// size is how much there is of a file; 0 of one that is not open.
func (e *eventFile) size() (int64, error) {
	if e.f == nil {
		return 0, nil
	}
	info, err := e.f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (t *EventTail) olderLines(fn func(agent.Event)) error {
	size, err := t.older.size()
	if err != nil {
		return err
	}
	return t.lines(&t.older, size, fn)
}

// lines reads on in a file that has that size.
func (t *EventTail) lines(e *eventFile, size int64, fn func(agent.Event)) error {
	if size < e.at { // cut by hand
		e.at = 0
	}
	if size == e.at {
		return nil
	}
	part := io.NewSectionReader(e.f, e.at, size-e.at)
	if t.in == nil {
		t.in = bufio.NewReaderSize(part, 64<<10)
	}
	t.in.Reset(part)
	for {
		line, err := readLine(t.in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		e.at += int64(line.size)
		if event, ok := parseEvent(line.data); ok {
			fn(event)
		}
	}
}

// parseEvent reads a line. What a full disk has cut short has the next line at
// its end; nothing inside of a text looks like the beginning of a line.
func parseEvent(line []byte) (e agent.Event, ok bool) {
	if json.Unmarshal(line, &e) == nil {
		return e, e.Event != ""
	}
	i := bytes.LastIndex(line, []byte(`{"ms":`))
	if i <= 0 {
		return e, false
	}
	e = agent.Event{}
	return e, json.Unmarshal(line[i:], &e) == nil && e.Event != ""
}

// A rawLine is a whole line; data is nil if it was longer than any of ours.
type rawLine struct {
	data []byte
	size int
}

func readLine(in *bufio.Reader) (l rawLine, err error) {
	for {
		part, err := in.ReadSlice('\n')
		l.size += len(part)
		if l.size <= maxEvent {
			l.data = append(l.data, part...)
		} else {
			l.data = nil
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return rawLine{}, err // a line without its end is not read yet
		}
		if l.size > maxEvent {
			l.data = nil
		}
		return l, nil
	}
}
