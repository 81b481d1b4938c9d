// This file is the file seen of a mailbox: the IDs of the envelopes that have had
// their effect, so that none has it twice.
//
// [SeenFile] is for the receiver, which holds the mailbox's lock and is the only writer,
// [Memory] for all others. A line that Add has added survives a loss of power. A crash
// leaves at most half a line at the end, which is skipped.

package mailbox

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
)

const (
	SeenName = "seen"  // of the file in a mailbox
	maxSeen  = 500_000 // IDs remembered; each costs about 40 bytes of memory
)

// A SeenFile is the file of the IDs that have had their effect: one line each, with tabs
// between milliseconds, sender, ID, hops and idempotency key. Only the receiver that
// holds the mailbox's lock writes it. A line is fsynced before its envelope leaves
// claimed/, and it is forgotten after keep. A crash leaves at most half a line at the
// end, which is skipped.
type SeenFile struct {
	Home  home.Dir
	Box   string        // the mailbox's directory
	Keep  time.Duration // after it an ID is forgotten
	Files *Maker

	Loaded time.Time // when it was last read

	open  bool
	file  Kept
	size  int64 // as far as the lines are valid
	doubt bool  // the file has an invalid part after size
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
	cutoff := now.Add(-s.Keep).UnixMilli()
	keys, lines := make(map[Key]struct{}), 0
	skip := total - maxSeen
	err = s.each(func(line []byte) error {
		if skip--; skip >= 0 {
			return nil
		}
		if ms, e, ok := ParseSeen(line); ok && ms >= cutoff {
			lines++
			for _, k := range KeysOf(e) {
				keys[k] = struct{}{}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.keys, s.lines, s.Loaded = keys, lines, now
	if dropped := total - s.lines; dropped > 1000 && dropped > s.lines {
		return s.rewrite(now, nil)
	}
	return nil
}

func (s *SeenFile) reopen() error {
	s.Close()
	dir, err := MakeDir(s.Home, s.Box)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	fd, err := Open(dir, SeenName, unix.O_RDWR|unix.O_APPEND|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err != nil {
		return fmt.Errorf("open %s: %w", s.Home.Path(s.Box, SeenName), err)
	}
	s.open, s.file = true, Keep(fd)
	st, err := Fstat(fd)
	if err != nil {
		return err
	}
	if err := CheckStat(st); err != nil {
		return fmt.Errorf("%s: %w", s.Home.Path(s.Box, SeenName), err)
	}
	if err := s.Files.EnsureMode(fd); err != nil {
		return err
	}
	s.size = st.Size
	if st.Size == 0 { // possibly just created: its name must survive too
		return Fsync(dir)
	}
	return nil
}

// Close closes the file; Load and Add open it again.
func (s *SeenFile) Close() {
	if s.open {
		unix.Close(s.file.FD)
		s.open = false
	}
}

func (s *SeenFile) each(fn func(line []byte) error) error {
	// One read is one step, however long the file is.
	if err := Step("read"); err != nil {
		return err
	}
	in := bufio.NewReaderSize(io.NewSectionReader(ReaderAt(s.file.FD), 0, s.size), 64<<10)
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case err == io.EOF:
			s.doubt = s.doubt || len(line) > 0 // half a line is no line
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return fmt.Errorf("read %s: %w", s.Home.Path(s.Box, SeenName), err)
		}
		if err := fn(line); err != nil {
			return err
		}
	}
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
	if s.doubt || s.append(lines) != nil {
		// The kernel may have dropped what it could not write, so a new copy of
		// everything known to be valid replaces the file.
		s.doubt = true
		if err := s.rewrite(now, lines); err != nil {
			return fmt.Errorf("remember %s: %w", list[0].ID, err)
		}
	}
	s.lines += len(list)
	for _, e := range list {
		for _, k := range KeysOf(e) {
			s.keys[k] = struct{}{}
		}
	}
	return nil
}

func (s *SeenFile) append(line []byte) error {
	if err := Write(s.file.FD, line); err != nil {
		return err
	}
	if err := Fsync(s.file.FD); err != nil {
		return err
	}
	s.size += int64(len(line))
	return nil
}

// Gone reports whether the file has been removed or replaced.
func (s *SeenFile) Gone() bool { return !s.open || !s.file.Here() }

// rewrite replaces the file by a new one with the lines worth keeping, and one more.
func (s *SeenFile) rewrite(now time.Time, more []byte) error {
	dir, err := MakeDir(s.Home, s.Box)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	temp := TempName(SeenName)
	if err := Unlink(dir, temp); err != nil && err != unix.ENOENT {
		return err
	}
	cutoff, skip := now.Add(-s.Keep).UnixMilli(), s.lines-maxSeen
	err = s.Files.WriteNew(dir, temp, func(fd int) error {
		out := bufio.NewWriterSize(Writer(fd), 64<<10)
		err := s.each(func(line []byte) error {
			if skip--; skip >= 0 {
				return nil
			}
			if ms, _, ok := ParseSeen(line); ok && ms >= cutoff {
				_, err := out.Write(line)
				return err
			}
			return nil
		})
		if err != nil {
			return err
		}
		out.Write(more)
		return out.Flush()
	})
	if err != nil {
		return err
	}
	if err := Rename(dir, temp, dir, SeenName); err != nil {
		return err
	}
	if err := Fsync(dir); err != nil {
		return err
	}
	s.doubt = false
	return s.reopen()
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
