// This file is the file seen of a mailbox: the IDs of the envelopes that have had
// their effect, so that none has it twice.
//
// [SeenFile] is for the receiver, which holds the mailbox's lock and is the only writer,
// [Memory] for all others. A line that Add has added survives a loss of power. A crash
// leaves at most half a line at the end, which is skipped.

package mailbox

import (
	"crypto/sha256"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
)

const (
	SeenName = "seen"  // of the file in a mailbox
	maxSeen  = 500_000 // IDs remembered; each costs about 40 bytes of memory
)

// A SeenFile is the file of the IDs that have had their effect: one line each, with tabs
// between milliseconds, sender, ID, hops and idempotency key. A line is fsynced before its
// envelope leaves claimed/, and it is forgotten after Keep.
type SeenFile struct {
	Lines
	Keep time.Duration // after it an ID is forgotten

	Loaded time.Time // when it was last read

	lines int
	keys  map[Key]struct{}
}

// A Key identifies an envelope that is remembered.
type Key [16]byte

// KeysOf returns the keys under which an envelope is remembered. An ID belongs to its
// sender: two agents that both number their messages from 1 lose none.
func KeysOf(e envelope.Envelope) []Key {
	list := []Key{makeKey("id", e.From, e.ID)}
	if e.IdempotencyKey != "" {
		list = append(list, makeKey("key", e.From, e.IdempotencyKey))
	}
	return list
}

func makeKey(what string, from agent.ID, value string) Key {
	sum := sha256.Sum256([]byte(what + "\x00" + string(from) + "\x00" + value))
	return Key(sum[:16])
}

// Has reports whether the envelope is remembered to have had its effect.
func (s *SeenFile) Has(e envelope.Envelope) bool {
	for _, k := range KeysOf(e) {
		if _, ok := s.keys[k]; ok {
			return true
		}
	}
	return false
}

// Load opens the file and reads it to its end. Lines older than keep, and the oldest of
// too many, are forgotten; when they are half of the file, it is rewritten without
// them.
func (s *SeenFile) Load(now time.Time) error {
	if err := s.reopen(); err != nil {
		return err
	}
	total, err := s.countLines()
	if err != nil {
		return err
	}
	keys, lines := make(map[Key]struct{}), 0
	err = s.kept(now, total, func(_ []byte, e envelope.Envelope) error {
		lines++
		for _, k := range KeysOf(e) {
			keys[k] = struct{}{}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.keys, s.lines, s.Loaded = keys, lines, now
	if dropped := total - s.lines; dropped > 1000 && dropped > s.lines {
		return s.Replace(func(out io.Writer) error { return s.copy(now, out) })
	}
	return nil
}

func (s *SeenFile) countLines() (n int, err error) {
	err = s.each(func([]byte) error { n++; return nil })
	return n, err
}

// Add remembers envelopes so that they survive a loss of power.
func (s *SeenFile) Add(now time.Time, list ...envelope.Envelope) error {
	if s.Gone() || s.lines > maxSeen+maxSeen/4 {
		if err := s.Load(now); err != nil {
			return err
		}
	}
	var lines []byte
	for _, e := range list {
		lines = append(lines, seenLine(e, now)...)
	}
	err := s.Append(lines, true, func(out io.Writer) error {
		err := s.copy(now, out)
		if err == nil {
			_, err = out.Write(lines)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("remember %s: %w", list[0].ID, err)
	}
	s.lines += len(list)
	for _, e := range list {
		for _, k := range KeysOf(e) {
			s.keys[k] = struct{}{}
		}
	}
	return nil
}

// kept calls fn with the lines that are worth keeping, of that many.
func (s *SeenFile) kept(now time.Time, lines int, fn func(line []byte, e envelope.Envelope) error) error {
	cutoff, skip := now.Add(-s.Keep).UnixMilli(), lines-maxSeen
	return s.each(func(line []byte) error {
		if skip--; skip >= 0 {
			return nil
		}
		if ms, e, ok := ParseSeen(line); ok && ms >= cutoff {
			return fn(line, e)
		}
		return nil
	})
}

func (s *SeenFile) copy(now time.Time, out io.Writer) error {
	return s.kept(now, s.lines, func(line []byte, _ envelope.Envelope) error {
		_, err := out.Write(line)
		return err
	})
}

func seenLine(e envelope.Envelope, now time.Time) []byte {
	return fmt.Appendf(nil, "%d\t%s\t%s\t%d\t%s\n", now.UnixMilli(), e.From, e.ID, e.Hops, e.IdempotencyKey)
}

// ParseSeen parses a line: when the envelope was remembered, and its keys.
func ParseSeen(line []byte) (ms int64, e envelope.Envelope, ok bool) {
	f := strings.Split(strings.TrimSuffix(string(line), "\n"), "\t")
	if len(f) != 5 {
		return 0, e, false
	}
	ms, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil {
		return 0, e, false
	}
	hops, err := strconv.Atoi(f[3])
	if err != nil {
		return 0, e, false
	}
	return ms, envelope.Envelope{From: agent.ID(f[1]), ID: f[2], Hops: hops, IdempotencyKey: f[4]}, true
}
