package bus

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
	"netsky/bus/disk"
	"netsky/bus/envelope"
)

const (
	seenFile = "seen"
	maxSeen  = 500_000 // IDs remembered; each costs about 40 bytes of memory
)

// A seen is the file of the IDs whose effect has been had: one line each, with
// tabs between milliseconds, sender, ID, hops and idempotency key. Only the
// receiver that holds the mailbox's lock writes it. A line is fsynced before
// its envelope leaves claimed/, and it is forgotten after keep. A crash leaves
// at most half a line at the end, which is skipped.
type seen struct {
	bus    *Bus
	box    string // the mailbox's directory
	open   bool
	file   disk.Kept
	size   int64 // as far as the lines are good
	doubt  bool  // what lies behind size is not
	lines  int
	loaded time.Time
	keys   map[seenKey]struct{}
}

type seenKey [16]byte

// keysOf are the keys under which an envelope is remembered. An ID is its
// sender's: two agents that both count their messages from 1 lose none.
func keysOf(e envelope.Envelope) []seenKey {
	list := []seenKey{makeKey("id", e.From, e.ID)}
	if e.IdempotencyKey != "" {
		list = append(list, makeKey("key", e.From, e.IdempotencyKey))
	}
	return list
}

func makeKey(what string, from agent.ID, value string) seenKey {
	sum := sha256.Sum256([]byte(what + "\x00" + string(from) + "\x00" + value))
	return seenKey(sum[:16])
}

func (s *seen) has(e envelope.Envelope) bool {
	for _, k := range keysOf(e) {
		if _, ok := s.keys[k]; ok {
			return true
		}
	}
	return false
}

// load opens the file and reads it to its end. Lines older than keep, and the
// oldest of too many, are forgotten; when that is half of the file, it is
// written anew without them.
func (s *seen) load(now time.Time) error {
	if err := s.reopen(); err != nil {
		return err
	}
	total, err := s.countLines()
	if err != nil {
		return err
	}
	cutoff := now.Add(-s.bus.keep).UnixMilli()
	keys, lines := make(map[seenKey]struct{}), 0
	skip := total - maxSeen
	err = s.each(func(line []byte) error {
		if skip--; skip >= 0 {
			return nil
		}
		if ms, e, ok := parseSeen(line); ok && ms >= cutoff {
			lines++
			for _, k := range keysOf(e) {
				keys[k] = struct{}{}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.keys, s.lines, s.loaded = keys, lines, now
	if dropped := total - s.lines; dropped > 1000 && dropped > s.lines {
		return s.rewrite(now, nil)
	}
	return nil
}

func (s *seen) reopen() error {
	s.close()
	dir, err := disk.MakeDir(s.bus.home, s.box)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	fd, err := disk.Open(dir, seenFile, unix.O_RDWR|unix.O_APPEND|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err != nil {
		return fmt.Errorf("open %s: %w", s.bus.home.Path(s.box, seenFile), err)
	}
	s.open, s.file = true, disk.Keep(fd)
	st, err := disk.Fstat(fd)
	if err != nil {
		return err
	}
	if err := disk.CheckStat(st); err != nil {
		return fmt.Errorf("%s: %w", s.bus.home.Path(s.box, seenFile), err)
	}
	if err := s.bus.files.EnsureMode(fd); err != nil {
		return err
	}
	s.size = st.Size
	if st.Size == 0 { // perhaps just made: its name must last too
		return disk.Fsync(dir)
	}
	return nil
}

func (s *seen) close() {
	if s.open {
		unix.Close(s.file.FD)
		s.open = false
	}
}

func (s *seen) each(fn func(line []byte) error) error {
	// One reading is one step, however long the file is.
	if err := disk.Step("read"); err != nil {
		return err
	}
	in := bufio.NewReaderSize(io.NewSectionReader(disk.ReaderAt(s.file.FD), 0, s.size), 64<<10)
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case err == io.EOF:
			s.doubt = s.doubt || len(line) > 0 // half a line is no line
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return fmt.Errorf("read %s: %w", s.bus.home.Path(s.box, seenFile), err)
		}
		if err := fn(line); err != nil {
			return err
		}
	}
}

func (s *seen) countLines() (n int, err error) {
	err = s.each(func([]byte) error { n++; return nil })
	return n, err
}

// add remembers envelopes so that it survives a loss of power.
func (s *seen) add(now time.Time, list ...envelope.Envelope) error {
	if s.gone() || s.lines > maxSeen+maxSeen/4 {
		if err := s.load(now); err != nil {
			return err
		}
	}
	var lines []byte
	for _, e := range list {
		lines = append(lines, seenLine(e, now)...)
	}
	if s.doubt || s.append(lines) != nil {
		// What the kernel could not write it may have thrown away, so a fresh
		// copy of all that is known to be good takes the file's place.
		s.doubt = true
		if err := s.rewrite(now, lines); err != nil {
			return fmt.Errorf("remember %s: %w", list[0].ID, err)
		}
	}
	s.lines += len(list)
	for _, e := range list {
		for _, k := range keysOf(e) {
			s.keys[k] = struct{}{}
		}
	}
	return nil
}

func (s *seen) append(line []byte) error {
	if err := disk.Write(s.file.FD, line); err != nil {
		return err
	}
	if err := disk.Fsync(s.file.FD); err != nil {
		return err
	}
	s.size += int64(len(line))
	return nil
}

// gone reports whether the file has been taken from its place.
func (s *seen) gone() bool { return !s.open || !s.file.Here() }

// rewrite replaces the file by a fresh one that holds the lines worth keeping,
// and one more.
func (s *seen) rewrite(now time.Time, more []byte) error {
	dir, err := disk.MakeDir(s.bus.home, s.box)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	temp := disk.TempName(seenFile)
	if err := disk.Unlink(dir, temp); err != nil && err != unix.ENOENT {
		return err
	}
	cutoff, skip := now.Add(-s.bus.keep).UnixMilli(), s.lines-maxSeen
	err = s.bus.files.WriteNew(dir, temp, func(fd int) error {
		out := bufio.NewWriterSize(disk.Writer(fd), 64<<10)
		err := s.each(func(line []byte) error {
			if skip--; skip >= 0 {
				return nil
			}
			if ms, _, ok := parseSeen(line); ok && ms >= cutoff {
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
	if err := disk.Rename(dir, temp, dir, seenFile); err != nil {
		return err
	}
	if err := disk.Fsync(dir); err != nil {
		return err
	}
	s.doubt = false
	return s.reopen()
}

func seenLine(e envelope.Envelope, now time.Time) []byte {
	return fmt.Appendf(nil, "%d\t%s\t%s\t%d\t%s\n", now.UnixMilli(), e.From, e.ID, e.Hops, e.IdempotencyKey)
}

func parseSeen(line []byte) (ms int64, e envelope.Envelope, ok bool) {
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
