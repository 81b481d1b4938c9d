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
	"netsky/internal/proc"
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
func (b *Bus) Names(id agent.ID, p Place) ([]string, error) {
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
func (b *Bus) openListed(id agent.ID, p Place) (fd int, list []candidate, err error) {
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
func (b *Bus) Read(id agent.ID, p Place, name string) (Entry, error) {
	fd, err := b.openPlace(id, p)
	if err != nil {
		return Entry{}, err
	}
	defer unix.Close(fd)
	return b.entry(fd, id, p, name)
}

func (b *Bus) entry(fd int, id agent.ID, p Place, name string) (Entry, error) {
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
func (b *Bus) List(id agent.ID, p Place, newest int) ([]Entry, error) {
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
func (b *Bus) Strays(id agent.ID) (n int, first []string, err error) {
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
func (b *Bus) Count(id agent.ID, p Place) (int, error) {
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

// Answered reports whether an agent has answered a message, which others that got one with
// the same ID may have done too. A sender without a mailbox has no answer.
func (b *Bus) Answered(ctx context.Context, by agent.ID, q envelope.Envelope) (bool, error) {
	_, found, err := b.AnswerTo(ctx, by, q)
	return found, err
}

// AnswerTo returns what Answered has found.
func (b *Bus) AnswerTo(ctx context.Context, by agent.ID, q envelope.Envelope) (e Entry, found bool, err error) {
	// If the clock was set back, the answer may seem older than the question.
	if now := b.now(); q.Time.Before(b.born) || proc.SetBack(b.born, now) {
		q.Time = q.Time.Add(-time.Minute)
	} else if q.Time.After(now) {
		q.Time = time.Time{}
	}
	e, found, err = b.FindAnswer(ctx, by, q.From, q.ID, q.Time)
	if errors.Is(err, ErrNoMailbox) {
		return Entry{}, false, nil
	}
	return e, found, err
}

// FindAnswer looks in a mailbox for the answer by that agent, or by any if it is "", to the
// envelope inReplyTo: the newest of any kind but ack, cancel and the approvals, a waiting one
// before a delivered one. It opens no file from more than a second before the question was
// sent, and lists no place that has not changed since. It takes nothing and needs no lock.
func (b *Bus) FindAnswer(ctx context.Context, by, mailbox agent.ID, inReplyTo string, sent time.Time) (e Entry, found bool, err error) {
	for _, p := range places[:3] {
		fd, err := b.openPlace(mailbox, p)
		if err != nil {
			return Entry{}, false, err
		}
		e, found, err = b.findAnswerIn(ctx, fd, by, mailbox, p, inReplyTo, sent)
		unix.Close(fd)
		if found || err != nil {
			return e, found, err
		}
	}
	return Entry{}, false, nil
}

func (b *Bus) findAnswerIn(ctx context.Context, fd int, by, id agent.ID, p Place, inReplyTo string, sent time.Time) (Entry, bool, error) {
	oldest := int64(0)
	if !sent.IsZero() {
		oldest = sent.Add(-time.Second).UnixNano()
		if st, err := mailbox.Fstat(fd); err == nil && unchanged(st.Mtim.Nano(), sent) {
			return Entry{}, false, nil
		}
	}
	list, err := candidates(fd, oldest)
	if err != nil {
		return Entry{}, false, fmt.Errorf("list %s of %s: %w", p, id, err)
	}
	for _, c := range slices.Backward(list) {
		if err := ctx.Err(); err != nil {
			return Entry{}, false, err
		}
		if _, from, ours := envelope.NameParts(c.name); ours && by != "" && from != string(by) {
			continue
		}
		e, err := b.entry(fd, id, p, c.name)
		if err != nil || e.Err != nil || e.Envelope.InReplyTo != inReplyTo || by != "" && e.Envelope.From != by {
			continue
		}
		switch e.Envelope.Kind {
		case envelope.KindAck, envelope.KindHeld, envelope.KindNotice, envelope.KindCancel, envelope.KindApproval, envelope.KindApprovalAnswer:
			continue
		}
		return e, true, nil
	}
	return Entry{}, false, nil
}

// unchanged reports whether a directory with that modification time, in nanoseconds, has
// certainly not changed since. The kernel's time for files is up to 10 ms behind, and some
// file systems store whole seconds only, or even ones.
func unchanged(mtime int64, since time.Time) bool {
	late := 2 * time.Second
	if mtime%int64(time.Second) != 0 {
		late = 50 * time.Millisecond
	}
	return mtime < since.Add(-late).UnixNano()
}

// Locate finds every file that carries an envelope's ID, in all places of all mailboxes.
// It reads every file, so it is meant for a person's question.
func (b *Bus) Locate(ctx context.Context, id string) ([]Entry, error) {
	if !envelope.IsID(id) {
		return nil, envelope.Invalidf("id: %s", envelope.Clip(id))
	}
	boxes, err := b.Mailboxes()
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

func (b *Bus) locateIn(ctx context.Context, box agent.ID, p Place, id string) (found []Entry, err error) {
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
