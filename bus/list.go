package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
)

// An Entry is one file of a mailbox.
type Entry struct {
	Mailbox  agent.ID
	Place    Place
	Name     string
	Size     int64
	Time     time.Time         // when it was made, from its name if possible
	Envelope envelope.Envelope // zero if Err is set
	Err      error             // why it cannot be read as an envelope
	Why      string            // the .why beside it: why it is here, for people
	Reason   mailbox.Reason    // the same for programs; "" if it was not put aside
	Origin   Place             // in poison: where it was found, if known
}

// IsMessage reports whether the entry is mail to read: a valid envelope, not in poison/,
// and not control mail for receivers.
func (e Entry) IsMessage() bool {
	return e.Err == nil && e.Place != Poison && !e.Envelope.Kind.Control()
}

// Fact returns the first line of Why; for a file in poison, what is wrong with it.
func (e Entry) Fact() string {
	line, _, _ := strings.Cut(e.Why, "\n")
	return strings.TrimPrefix(line, mailbox.NotDelivered)
}

// Names lists the files of a place in order, oldest first. It opens none of the bus's own;
// for files dropped by hand it reads the time.
func (b *boxes) Names(id agent.ID, p Place) ([]string, error) {
	fd, list, err := b.openListed(id, p)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.name
	}
	return names, nil
}

// openListed opens a place and lists its envelopes; the caller closes it.
func (b *boxes) openListed(id agent.ID, p Place) (fd int, list []candidate, err error) {
	if fd, err = b.openPlace(id, p); err != nil {
		return fd, nil, err
	}
	if list, err = candidates(fd, 0); err != nil {
		unix.Close(fd)
		return -1, nil, fmt.Errorf("list %s of %s: %w", p, id, err)
	}
	return fd, list, nil
}

// candidates lists the envelopes of a directory made at since or later.
func candidates(fd int, since int64) (list []candidate, err error) {
	var failed error
	err = mailbox.Names(fd, func(name string) bool {
		if !envelope.IsFile(name) {
			return true
		}
		ns, err := orderTime(fd, name)
		switch {
		case err == nil && ns >= since:
			list = append(list, candidate{ns, name})
		case err != nil && !mailbox.Gone(err):
			failed = err
		}
		return true
	})
	slices.SortFunc(list, earlier)
	return list, errors.Join(err, failed)
}

// Read reads one file of a mailbox. If the file is invalid, the entry's Err says why;
// Read's error reports a missing file.
func (b *boxes) Read(id agent.ID, p Place, name string) (Entry, error) {
	fd, err := b.openPlace(id, p)
	if err != nil {
		return Entry{}, err
	}
	defer unix.Close(fd)
	return b.entry(fd, id, p, name)
}

func (b *boxes) entry(fd int, id agent.ID, p Place, name string) (Entry, error) {
	e := Entry{Mailbox: id, Place: p, Name: name}
	if !envelope.IsFileName(name) {
		return e, fmt.Errorf("%s: not an envelope's file name", envelope.Plain(name))
	}
	env, m, err := b.readEnvelope(fd, name, form{b, id, p})
	if mailbox.Gone(err) {
		return e, fmt.Errorf("%s in %s of %s: %w", envelope.Plain(name), p, id, err)
	}
	e.Envelope, e.Err, e.Size = env, err, m.Size
	if err == nil && (p == Inbox || p == Claimed || p == Delivered) {
		e.Envelope.To = id
	}
	ns, _, ok := envelope.NameParts(name)
	if !ok {
		ns = m.MTime
	}
	e.Time = timeOf(ns)
	if p == Poison || p == Delivered {
		w := readWhy(fd, name)
		e.Why, e.Reason, e.Origin = w.Text, w.Reason, Place(w.Origin.Place)
	}
	return e, nil
}

// List reads the newest files of a place, all if newest <= 0, oldest first. It holds all
// of them in memory; use Names and Read if there may be many.
func (b *boxes) List(id agent.ID, p Place, newest int) ([]Entry, error) {
	fd, found, err := b.openListed(id, p)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if newest > 0 {
		found = found[max(0, len(found)-newest):]
	}
	list := make([]Entry, 0, len(found))
	for _, c := range found {
		if e, err := b.entry(fd, id, p, c.name); err == nil { // else it has just moved on
			list = append(list, e)
		}
	}
	return list, nil
}

// maxStrays is how many stray files are listed by name.
const maxStrays = 3

// Strays counts the files in an inbox that are not named like envelopes, so nothing reads
// them. first are some of their names, in order. Hidden files do not count.
func (b *boxes) Strays(id agent.ID) (n int, first []string, err error) {
	fd, err := b.openPlace(id, Inbox)
	if err != nil {
		return 0, nil, err
	}
	defer unix.Close(fd)
	err = mailbox.Names(fd, func(name string) bool {
		if name[0] != '.' && !envelope.IsFile(name) && !strings.HasSuffix(name, envelope.WhySuffix) {
			n++
			at, _ := slices.BinarySearch(first, name)
			first = slices.Insert(first, at, name)
			first = first[:min(len(first), maxStrays)]
		}
		return true
	})
	if err != nil {
		return 0, nil, fmt.Errorf("list %s of %s: %w", Inbox, id, err)
	}
	return n, first, nil
}

// Count counts the files of a place.
func (b *boxes) Count(id agent.ID, p Place) (int, error) {
	fd, err := b.openPlace(id, p)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	n, err := mailbox.Count(fd, int(^uint(0)>>1))
	if err != nil {
		return 0, fmt.Errorf("count %s of %s: %w", p, id, err)
	}
	return n, nil
}

// Locate finds every file that carries an envelope's ID, in all places of all mailboxes.
// It reads every file, so it is meant for a person's question.
func (b *boxes) Locate(ctx context.Context, id string) ([]Entry, error) {
	if !envelope.IsID(id) {
		return nil, envelope.Invalidf("id: %s", envelope.Clip(id))
	}
	boxes, err := b.All()
	if err != nil {
		return nil, err
	}
	var found []Entry
	for _, box := range boxes {
		for _, p := range places {
			list, err := b.locateIn(ctx, box, p, id)
			if err != nil && !errors.Is(err, ErrNoMailbox) {
				return found, err
			}
			found = append(found, list...)
		}
	}
	return found, nil
}

func (b *boxes) locateIn(ctx context.Context, box agent.ID, p Place, id string) (found []Entry, err error) {
	fd, list, err := b.openListed(box, p)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	for _, c := range list {
		if err := ctx.Err(); err != nil {
			return found, err
		}
		if !strings.HasPrefix(id, "f-") && !holds(fd, c.name, id, b.maxBytes) {
			continue
		}
		e, err := b.entry(fd, box, p, c.name)
		if err == nil && e.Err == nil && e.Envelope.ID == id {
			found = append(found, e)
		}
	}
	return found, nil
}

// holds reports whether a file contains the word, which is quicker than parsing it. IDs
// need no escapes in JSON, but may have them.
func holds(dir int, name, word string, limit int64) bool {
	data, _, err := mailbox.ReadFile(dir, name, limit)
	return err == nil && (bytes.Contains(data, []byte(word)) || bytes.Contains(data, []byte(`\u`)))
}

// An unfinishedError reports a file that is the beginning of an envelope.
type unfinishedError struct{ error }

func (e unfinishedError) Unwrap() error { return e.error }

// readEnvelope reads and parses one file and sets the envelope's ID. The error lists
// everything that is wrong with it.
func (b *boxes) readEnvelope(dir int, name string, f form) (envelope.Envelope, mailbox.Mark, error) {
	data, m, err := mailbox.ReadFile(dir, name, b.maxBytes)
	if err != nil {
		return envelope.Envelope{}, m, err
	}
	e, err := f.parse(data)
	if err != nil {
		err = envelope.Join(f.faults(data))
		if envelope.Unfinished(data) {
			err = unfinishedError{err}
		}
		return envelope.Envelope{}, m, err
	}
	if e.ID == "" {
		e.ID = envelope.FileID(name, m.MTime, m.Ino)
	}
	return e, m, nil
}

// orderTime returns the file's position in its mailbox's order, in nanoseconds.
func orderTime(dir int, name string) (ns int64, err error) {
	if ns, _, ok := envelope.NameParts(name); ok {
		return ns, nil
	}
	st, err := mailbox.Lstat(dir, name)
	if err != nil {
		return 0, err
	}
	return st.Mtim.Nano(), nil
}

func timeOf(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// A form is what an envelope must satisfy where it was found. The zero form requires only
// what every envelope must satisfy.
type form struct {
	boxes *boxes
	box   agent.ID // whose mailbox it is
	place Place    // Inbox, Outbox, or any other place, which requires nothing more
}

func (f form) parse(data []byte) (envelope.Envelope, error) { return envelope.Fit(f.fit).Parse(data) }

func (f form) faults(data []byte) []error { return envelope.Fit(f.fit).Faults(data) }

// fit fills in what the place implies and lists what contradicts it.
func (f form) fit(e *envelope.Envelope) (list []error) {
	switch f.place {
	case Inbox:
		if e.To != "" && e.To != f.box {
			list = append(list, envelope.Invalidf("to: %s, but this is the mailbox of %s", e.To, f.box))
		}
	case Outbox: // the sender and the time may be missing: the router knows them
		if e.From != "" && e.From != f.box {
			list = append(list, envelope.Invalidf("from: %s, but this is the outbox of %s", e.From, f.box))
		}
		e.From, e.Via = f.box, ""
		if e.Time.IsZero() {
			e.Time = f.boxes.now()
		}
		if e.To == "" {
			list = append(list, envelope.Invalidf("to: missing"))
		}
	}
	return list
}
