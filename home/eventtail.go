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
	aside bool // starts with the rotated file
	// The files are kept open, so that nothing before a rotation is missed. A process that
	// had the older one open may still write to it, so it is read until the next rotation.
	older, present eventFile
	in             *bufio.Reader
}

// An eventFile is one file of events, and how far it has been read.
type eventFile struct {
	f  *os.File // nil: not open
	at int64
}

// Tail returns a tail of the agent's events from the start of the current file. The
// caller must call Close.
func (h Events) Tail(id agent.ID) *EventTail { return &EventTail{home: Dir(h), id: id} }

// TailAll is Tail starting with the last rotated file.
func (h Events) TailAll(id agent.ID) *EventTail { return &EventTail{home: Dir(h), id: id, aside: true} }

// Close closes the files. The tail may be used again and then starts with the current
// file.
func (t *EventTail) Close() error {
	return errors.Join(t.older.close(), t.present.close())
}

// Read calls fn with each whole line added since the last call, and skips lines that are
// not events. If the file was truncated by hand it starts over.
func (t *EventTail) Read(fn func(agent.Event)) error {
	if err := t.read(fn); err != nil {
		return fmt.Errorf("events of %s: %w", t.id, err)
	}
	return nil
}

func (t *EventTail) read(fn func(agent.Event)) error {
	for range 3 { // the current file, and two rotations since
		if t.present.f == nil {
			if err := t.olderLines(fn); err != nil {
				return err
			}
			if err := t.open(); err != nil {
				return err
			}
		}
		// A process that wrote to the older file and then to this one is read in that order.
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

// open opens the current file, if any, and only then the rotated one, so that none between
// them is missed. That one may have come and gone since the last look, while no file had
// the name; or it is known.
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
	if first && !t.aside { // kept open to be recognised: inode numbers are reused
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

// named reports whether the open file is still the one under its name, or the last rotated
// one without a successor yet.
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
				return true, err // the current one was removed by hand
			}
		}
	}
	return err == nil && os.SameFile(open, named), err
}

// is reports whether two marks are of the same file.
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

// size returns the size of a file; 0 if it is not open.
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

// lines continues to read a file that has that size.
func (t *EventTail) lines(e *eventFile, size int64, fn func(agent.Event)) error {
	if size < e.at { // truncated by hand
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

// parseEvent parses a line. A line truncated by a full disk has the next one at its end;
// no text contains what looks like the start of a line.
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

// A rawLine is a whole line; data is nil if it exceeded the maximum.
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
			return rawLine{}, err // an unfinished line is not read yet
		}
		if l.size > maxEvent {
			l.data = nil
		}
		return l, nil
	}
}
