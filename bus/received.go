package bus

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
)

// ShortID is the minimum length of an abbreviated ID.
const ShortID = 6

// MostReceived limits what Received returns: enough to show that there are many.
const MostReceived = 10

// Received finds the messages with that ID that an address received: one from each sender
// that used it. If there is none, it finds those whose IDs begin with id, if id has at
// least ShortID characters. It returns each once, and at most MostReceived. Of delivered
// mail it opens only candidates, as the file seen holds IDs and senders. It takes nothing
// and needs no lock.
func (r memory) Received(ctx context.Context, box agent.ID, id string) ([]Entry, error) {
	s := &search{boxes: r.boxes, ctx: ctx, box: box, id: id}
	for _, p := range places[:3] {
		err := s.place(p)
		if err != nil && !errors.Is(err, ErrNoMailbox) {
			return nil, err
		}
	}
	if len(s.exact) > 0 {
		return s.exact, nil
	}
	return s.begin, nil
}

type search struct {
	*boxes
	ctx   context.Context
	box   agent.ID
	id    string
	exact []Entry // with exactly that ID, each from another sender
	begin []Entry
}

func (s *search) place(p Place) error {
	fd, list, err := s.openListed(s.box, p)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if p != Delivered {
		for _, c := range list {
			if _, err := s.look(fd, p, c.name, s.id, s.meant); err != nil {
				return err
			}
		}
		return nil
	}
	known, since, err := s.remembered()
	if err != nil {
		return err
	}
	for _, k := range known { // exact matches first
		if len(s.exact) > 0 && k.id != s.id || len(s.exact)+len(s.begin) >= MostReceived {
			return nil
		}
		if s.has(k.id, k.from) {
			continue
		}
		if err := s.locate(fd, list, k); err != nil {
			return err
		}
	}
	// Files older than what is remembered.
	for _, c := range list {
		if c.ns/1e6 >= since || len(s.exact) > 0 || len(s.begin) >= MostReceived {
			break
		}
		if _, err := s.look(fd, p, c.name, s.id, s.meant); err != nil {
			return err
		}
	}
	return nil
}

// meant reports whether an envelope's ID is the wanted one, or begins with it.
func (s *search) meant(e envelope.Envelope) bool {
	return e.ID == s.id || len(s.id) >= ShortID && strings.HasPrefix(e.ID, s.id)
}

// look reads a file that contains the word, and reports whether it is the message.
func (s *search) look(fd int, p Place, name, word string, is func(envelope.Envelope) bool) (bool, error) {
	if err := s.ctx.Err(); err != nil {
		return false, err
	}
	// An ID that begins with f- may be derived from the file's name.
	if !strings.HasPrefix("f-", word[:min(len(word), 2)]) && !holds(fd, name, word, s.maxBytes) {
		return false, nil
	}
	e, err := s.entry(fd, s.box, p, name)
	if err != nil || e.Err != nil || !is(e.Envelope) {
		return false, nil // moved on, or no message; the next place has it
	}
	switch {
	case s.has(e.Envelope.ID, string(e.Envelope.From)):
	case e.Envelope.ID == s.id && len(s.exact) < MostReceived:
		s.exact = append(s.exact, e)
	case e.Envelope.ID != s.id && len(s.begin) < MostReceived:
		s.begin = append(s.begin, e)
	}
	return true, nil
}

// has reports whether that message has been found.
func (s *search) has(id, from string) bool {
	is := func(e Entry) bool { return e.Envelope.ID == id && string(e.Envelope.From) == from }
	return slices.ContainsFunc(s.exact, is) || slices.ContainsFunc(s.begin, is)
}

// A remembered is a line of the file seen.
type remembered struct {
	ms   int64 // when it was delivered
	from string
	id   string
}

// remembered returns the messages that match, exact ones first, and the time in
// milliseconds from which everything is remembered.
func (s *search) remembered() (list []remembered, since int64, err error) {
	since = math.MaxInt64
	had := make(map[remembered]bool)
	err = mailbox.EachLine(s.home, s.box, func(line []byte) {
		if since != math.MaxInt64 && !bytes.Contains(line, []byte(s.id)) {
			return
		}
		ms, e, ok := mailbox.ParseSeen(line)
		if ok && since == math.MaxInt64 { // they are in order of time
			since = ms
		}
		k := remembered{from: string(e.From), id: e.ID}
		if ok && !had[k] && s.meant(e) {
			had[k] = true
			k.ms = ms
			list = append(list, k)
		}
	})
	slices.SortStableFunc(list, func(x, y remembered) int { return len(x.id) - len(y.id) })
	return list, since, err
}

// mostWaiting exceeds what a mailbox lets wait: one sender's messages are delivered in
// order, so no more of those sent before a delivery can have arrived after it.
const mostWaiting = 2000

// locate finds the file of a remembered message: it was sent before it was delivered,
// usually shortly before, and names its sender if the bus made it.
func (s *search) locate(fd int, list []candidate, k remembered) error {
	at, _ := slices.BinarySearchFunc(list, k.ms+1, func(c candidate, ms int64) int {
		return cmp.Compare(c.ns/1e6, ms)
	})
	tried := 0
	try := func(c candidate) (bool, error) {
		if _, from, ours := envelope.NameParts(c.name); ours && from != k.from {
			return false, nil
		}
		tried++
		return s.look(fd, Delivered, c.name, k.id, func(e envelope.Envelope) bool {
			return e.ID == k.id && string(e.From) == k.from
		})
	}
	pruned := k.ms < s.now().Add(-s.keep).UnixMilli() // most likely
	for _, c := range slices.Backward(list[:at]) {
		if found, err := try(c); found || err != nil || pruned && tried == mostWaiting {
			return err
		}
	}
	if pruned {
		return nil
	}
	for _, c := range list[at:] { // a clock was set back, or the file's time is not real
		if found, err := try(c); found || err != nil {
			return err
		}
	}
	return nil
}
